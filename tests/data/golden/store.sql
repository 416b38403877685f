-- The store of tests/integration/test_golden.c: trials of every state, points trained again, earlier points, several metrics and objectives,
-- constraints, decisions, settings over time, samples, joules, a gang. Times begin at 1700000000 s.

INSERT INTO studies (id, name, state, maximise, seed, created_ms, ended_ms, space_hash, config, provenance) VALUES
 (1, 'demo', 'incomplete', 1, 41, 1700000000000, 1700000600000, '0123456789abcdef',
  '{"study":{"name":"demo","metric":"accuracy","epochs":8,"target":0.93},"tuning":{"policy":"pipetune"},"search":{"algorithm":"tpe","learn_from":"early"},"hyperParameters":{"batch_size":[32,64,128,256],"learning_rate":{"min":0.001,"max":0.1,"scale":"log"}},"systemParameters":{"cores":[16,2],"memory":[2]},"nodes":["worker"],"monitoring":{"meters":[{"name":"rapl","idle_w":5}]},"bigdl":{"command":["./train"]}}',
  '{"pipetune":"0.1.0","commit":"abc123","spark":"3.5.8","java":17,"host":"<b>here</b>","kernel":"6.1.0","cores":2,"memory_gb":15.5,"config_file":"demo.json","sha256":{"train":"00ff"}}'),
 (2, 'front', 'finished', 1, 7, 1700001000000, 1700001090000, 'fedcba9876543210',
  '{"study":{"name":"front","metric":"f1","metrics":["f1",{"metric":"size","direction":"min"},"seconds"],"epochs":2,"constraints":["size < 60"]},"hyperParameters":{"lr":[1,2,3,4]}}',
  '{"pipetune":"0.1.0","host":"there"}'),
 (3, 'cut', 'running', 0, 1, 1700002000000, 0, NULL,
  '{"study":{"name":"cut","metric":"loss","direction":"min","epochs":3},"hyperParameters":{"lr":[0.1,0.2]},"tuning":{"policy":"v1"}}', NULL),
 (4, 'early', 'finished', 1, 5, 1699990000000, 1699990100000, NULL, '{"study":{"name":"early","epochs":2}}', NULL),
 (5, 'empty <&>', 'running', 1, 1, 1700003000000, 0, NULL, '{}', NULL);

WITH t (n, state, batch, rate, accuracy, loss, seconds, copy_of, repeat_of, repeat, learnt, reason, slots) AS (VALUES
 (1, 'finished', 64, 0.1, 0.9414, 0.2125, 100.5, 0, 0, 0, NULL, NULL, 2),
 (2, 'finished', 128, 0.031622776601683791, 0.9288, 0.25, 90, 0, 0, 0, NULL, NULL, 2),
 (3, 'finished', 32, 0.01, 0.8, 0.61, 140.25, 0, 0, 0, NULL, NULL, 2),
 (4, 'failed', 256, 0.1, NULL, NULL, 12.5, 0, 0, 0, NULL, '</td><script>alert(1)</script>: java heap space', 2),
 (5, 'stopped', 32, 0.001, 0.5, 1.5, 48, 0, 0, 0, NULL, 'epoch 4: 0.5 is below the median 0.87 of those before', 2),
 (6, 'paused', 64, 0.02, 0.91, 0.3, 36, 0, 0, 0, NULL, 'not among the best at epoch 3', 2),
 (7, 'finished', 64, 0.1, 0.9414, 0.2125, NULL, 1, 0, 0, NULL, NULL, 0),
 (8, 'finished', 64, 0.1, 0.93, 0.22, 101, 0, 1, 1, NULL, NULL, 2),
 (9, 'finished', 128, 0.05, 0.935, 0.23, 95, 0, 0, 0, 'early/2', NULL, 2),
 (10, 'infeasible', 256, 0.02, NULL, NULL, NULL, 0, 0, 0, NULL, 'memory 64 GiB: the machine has 15', 0),
 (11, 'waiting', 128, 0.1, NULL, NULL, 0, 0, 0, 0, NULL, NULL, 0),
 (12, 'running', 32, 0.05, 0.89, 0.4, 0, 0, 0, 0, NULL, NULL, 2))
INSERT INTO trials (id, study, number, proposal, ask_seq, state, epochs, slots, copy_of, accuracy, loss, metric, seconds, hyper, requested,
  effective, reason, repeat_of, repeat, learnt_from)
 SELECT 100 + n, 1, n, n - 1, n, state, 8, slots, copy_of, accuracy, loss, accuracy, seconds,
  json_object('batch_size', batch, 'learning_rate', rate), '{"cores":16,"memory":2}', '{"cores":2,"memory":2}', reason, repeat_of, repeat, learnt FROM t;

WITH t (n, f1, size, seconds, violates) AS (VALUES (1, 0.91234567, 50, 20.5, NULL), (2, 0.81, 20, 21.5, NULL), (3, 0.71, 30, 22, NULL),
 (4, 0.95, 99, 23, 'size 99, which is not < 60'))
INSERT INTO trials (id, study, number, proposal, ask_seq, state, epochs, slots, copy_of, accuracy, loss, metric, seconds, hyper, requested, effective, violates)
 SELECT 200 + n, 2, n, n - 1, n, 'finished', 2, 1, 0, NULL, 0.1 * n, f1, seconds, json_object('lr', n), '{"cores":1}', '{"cores":1}', violates FROM t;
INSERT INTO results (trial, name, value) SELECT id, 'f1', metric FROM trials WHERE study = 2
 UNION ALL SELECT id, 'seconds', seconds FROM trials WHERE study = 2
 UNION ALL SELECT 201, 'size', 50 UNION ALL SELECT 202, 'size', 20 UNION ALL SELECT 203, 'size', 30 UNION ALL SELECT 204, 'size', 99;

INSERT INTO trials (id, study, number, proposal, ask_seq, state, epochs, slots, copy_of, accuracy, loss, metric, seconds, hyper, requested, effective) VALUES
 (301, 3, 1, 0, 1, 'running', 3, 1, 0, NULL, 0.75, 0.75, 0, '{"lr":0.1}', '{"cores":1}', '{"cores":1}'),
 (401, 4, 1, 0, 1, 'finished', 2, 1, 0, 0.9, 0.5, 0.9, 10, '{"batch_size":64}', '{"cores":1}', '{"cores":1}'),
 (402, 4, 2, 1, 2, 'finished', 2, 1, 0, 0.92, 0.4, 0.92, 30, '{"batch_size":128}', '{"cores":1}', '{"cores":1}');

-- Attempts: two seconds of start-up, epochs of ten seconds.
INSERT INTO attempts (trial, number, state, outcome, pid, start_ticks, started_ms, ended_ms, log_offset, exit_code, first_epoch, launch, boot_id,
  app_id, cause, resumed_from, argv, setting, startup_s, session, cores, place)
 SELECT id, 1, CASE state WHEN 'running' THEN 'running' ELSE 'ended' END,
  CASE state WHEN 'finished' THEN 'finished' WHEN 'failed' THEN 'failed' WHEN 'running' THEN NULL ELSE state END, 1000 + id, 5,
  created + 1000 * number, CASE state WHEN 'running' THEN 0 ELSE created + 1000 * number + 1000 * seconds END, 0,
  CASE state WHEN 'failed' THEN 137 WHEN 'running' THEN -1 ELSE 0 END, 1, 'pt-' || id, NULL, 'local-' || id,
  CASE state WHEN 'failed' THEN 'java heap space' ELSE NULL END, NULL, '["./train","--batch-size","' || json_extract(hyper, '$.batch_size') || '","an arg"]',
  effective, 2, 0, 2, NULL
 FROM (SELECT t.*, s.created_ms AS created FROM trials t JOIN studies s ON s.id = t.study)
 WHERE copy_of = 0 AND state NOT IN ('infeasible', 'waiting');
INSERT INTO attempts (trial, number, state, outcome, pid, start_ticks, started_ms, ended_ms, log_offset, exit_code, first_epoch, launch, cause,
  resumed_from, argv, startup_s, cores, place)
 VALUES (104, 2, 'ended', 'failed', 7, 5, 1700000010000, 1700000018000, 0, 1, 2, 'pt-104b', 'java heap space' || char(10) || 'at line 2', 'model.1', '["./train"]', 2, 2, 'worker');
INSERT INTO members (trial, attempt, number, role, idx, node, pid, start_ticks, port, launch, boot_id, place) VALUES
 (102, 1, 0, 'chief', 0, 0, 71, 5, 4001, 'pt-102c', NULL, NULL), (102, 1, 1, 'worker', 0, 1, 72, 5, 4002, 'pt-102w', NULL, 'worker');

WITH RECURSIVE e (epoch) AS (SELECT 1 UNION ALL SELECT epoch + 1 FROM e WHERE epoch < 8),
 last (trial, n) AS (VALUES (101, 8), (102, 8), (103, 8), (104, 1), (105, 4), (106, 3), (108, 8), (109, 8), (112, 5), (201, 2), (202, 2), (203, 2), (204, 2),
  (301, 2), (401, 2), (402, 2))
INSERT INTO epochs (trial, epoch, attempt, accuracy, loss, metric, seconds, records, iterations, learning_rate, end_ms)
 SELECT id, epoch, 1, CASE WHEN study IN (2, 3) THEN NULL ELSE v END, round(1 - v * 0.9, 6), CASE study WHEN 3 THEN round(1 - v * 0.9, 6) ELSE v END,
  10, 60000, CASE WHEN number % 2 THEN 59 ELSE 0 END, CASE WHEN number % 2 THEN 0.1 ELSE NULL END, begun + 1000 * number + 2000 + 10000 * epoch
 FROM (SELECT t.id, t.study, t.number, e.epoch, s.created_ms AS begun,
   round(coalesce(t.metric, 0.5) - (0.4 + 0.01 * t.number) * (1.0 / e.epoch - 1.0 / last.n), 6) AS v
  FROM last JOIN trials t ON t.id = last.trial JOIN studies s ON s.id = t.study JOIN e ON e.epoch <= last.n);

-- What was told by name: of epochs and of steps.
INSERT INTO series (trial, name, step, epoch, attempt, at_ms, value)
 SELECT trial, 'grad norm', 0, epoch, 1, end_ms, round(3.0 / epoch, 4) FROM epochs WHERE trial IN (101, 102)
 UNION ALL SELECT trial, 'accuracy', 0, epoch, 1, end_ms, accuracy FROM epochs WHERE trial = 101
 UNION ALL SELECT trial, 'loss', 10 * epoch, epoch, 1, end_ms, loss FROM epochs WHERE trial = 101
 UNION ALL SELECT trial, 'f1', 0, epoch, 1, end_ms, metric FROM epochs WHERE trial BETWEEN 201 AND 204
 UNION ALL SELECT 101, 'never finite', 0, 1, 1, 0, NULL;

INSERT INTO checkpoints (trial, epoch, attempt, path) VALUES (101, 8, 1, '/nowhere/model.8');

INSERT INTO decisions (study, seq, trial, t_s, kind, setting, reason) VALUES
 (1, 1, 0, 0, 'begin', NULL, 'the study'),
 (1, 2, 1, 0.5, 'propose', NULL, 'the first'),
 (1, 3, 1, 1, 'launch', '{"cores":2,"memory":2}', 'attempt 1'),
 (1, 4, 1, 12.25, 'apply', '{"cores":1,"memory":2}', 'probe 1 of 1 core'),
 (1, 5, 1, 31, 'settle', '{"cores":2,"memory":2}', '2 cores < 3 & faster'),
 (1, 6, 2, 40, 'reuse', '{"cores":2,"memory":2}', 'a profile of cluster 3, 0.51 spreads away: settled at once on 2 cores, saving 3 probes'),
 (1, 7, 4, 3700, 'fail', NULL, 'java heap space' || char(10) || 'at line 2'),
 (2, 1, 0, 0, 'begin', NULL, 'the study');

INSERT INTO tuner_log (study, seq, text) VALUES (1, 1, 'H 1 pipetune 3 0.1 0.01 0.01 2 1 2 1 4
s 1 0 1 0 "lenet <batch>" "lenet" 1 2 0 1 2
i 1 10 1 10 1500 3000
a 1 10 0 0
i 1 20 1 10 1000 3000
i 1 30 2 10 1000 3000
a 1 30 1 0
i 1 32 2 2 400 3000
d 1
s 2 0 0 0 "lenet <batch>" "lenet" 1 2 0 1 2
i 2 10 1 10 1000 3000
d 2
s 12 0 1 0 "lenet <other>" "lenet" 1 2 0 1 2
i 12 10 1 10 1500 3000
');

INSERT INTO samples (trial, t_ms, dt_ms, node, scope, cells, cpu_s) VALUES
 (101, 1700000002000, 1000, 0, 'process', '100 7 u', NULL), (101, 1700000014000, 2000, 0, 'process', '400 n u', NULL),
 (102, 1700000014000, 1000, 0, 'process', '250 n u', NULL), (103, 1700000014000, 1000, 0, 'process', '50/0.5 - d', NULL);
INSERT INTO features (id, study, names) VALUES (1, 1, 'proc/cpu-time');
WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 100)
INSERT INTO samples (trial, t_ms, dt_ms, node, scope, cells, cpu_s, features)
 SELECT 101, 1700000001000 + 1000 * i, 1000, 0, 'process', '', 0.5, 1 FROM s
 UNION ALL SELECT 102, 1700000002000 + 1000 * i, 1000, 0, 'process', '', 1, 1 FROM s WHERE i <= 90;
INSERT INTO profiles (trial, seq, epoch, t_from_ms, t_to_ms, setting, vector, verdict) VALUES
 (101, 1, 2, 1700000012000, 1700000014000, '{"cores":2}', '[]', '{"verdict":"known","cluster":3,"near":[{"cluster":3,"distance":0.5100000000000001}]}');

-- 20 W of one node from the first to the last attempt, and a gap; another meter that read a little.
WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < 160)
INSERT INTO energy (study, node, meter, from_ms, to_ms, value, error, state)
 SELECT 1, 0, 'rapl', 1700000000000 + 1000 * (i - 1), 1700000000000 + 1000 * i, 20, 0.01, CASE WHEN i BETWEEN 90 AND 110 THEN 'failed' ELSE 'ok' END FROM s
 UNION ALL SELECT 1, 1, 'estimate', 1700000000000 + 1000 * (i - 1), 1700000000000 + 1000 * i, 12.5, 2, 'ok' FROM s WHERE i < 20
 UNION ALL SELECT 1, 0, 'cpu', 1700000000000 + 1000 * (i - 1), 1700000000000 + 1000 * i, 1.6, 0.01, 'ok' FROM s;
