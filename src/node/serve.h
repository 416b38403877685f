/* `pipetune-node serve`: starts and follows launches, narrows and widens their CPUs, on request. JSON lines (base/wire.h) on stdin and stdout, one
 * answer to each request, in order. Requests have "id" (a whole number, repeated in the answer) and "verb":
 *
 *   {"id":1,"verb":"hello","protocol":1,"clock_ms":R,"worker":"BEGINS*ENDS","worker_cores":"--cores"}
 *       {"id":1,"ok":true,"protocol":1,"version":"0.1.0","clock_ms":R2,"uid":1000,"host":"name","features":"a,b","cpus":[0,2,1,3],
 *        "frequency_khz":[MIN,MAX]|null,"power_cap_w":[W of each package]|null,"root":"/home/u/.local/state/pipetune","sessions":true,"memory_gb":X}
 *       root: below which launches lie, left out where there is no place for them (launches.h); sessions: it knows `mark`, `run`, `talk` and
 *       `say`; memory_gb: of the machine.
 *       worker, worker_cores: which processes of a launch that is not local work, and which option says how many slots each has
 *       (members.h); left out: all its processes work, and all its slots are where any of them is.
 *       features: what its samples are made of, in their order, by name (monitoring/features.h).
 *       cpus: those that it gives out, physical cores first. Another protocol: ok false, both numbers, and the end. It comes first.
 *   {"id":2,"verb":"lease"}                        {"id":2,"ok":true}      every request renews the lease, this one does no more
 *   {"id":3,"verb":"apply","tag":"T","cores":1,"slots":2,"local":true,"cpus":[0,1],"frequency_khz":N,"power_cap_w":W}
 *       {"id":3,"ok":true,"processes":2,"threads":363,"slots":2,"cpus":[0],"frequency_khz":N,"power_cap_w":W}
 *       cpus and what follows are optional, and null is as good as absent; the limits are answered when they were asked for. The
 *       answer is what was read back. Where the driver names no CPUs and it is not local mode, they are leased here for the tag
 *       (leased.h); "shared":"process 77 of user 1000" is added while somebody else uses any of them. No process here: processes 0. None that works: slots 0, cpus [].
 *   {"id":4,"verb":"release","tag":"T"}            {"id":4,"ok":true}      fine for a tag that is not known; ends its sampling, too
 *   {"id":7,"verb":"sample","tag":"T","interval_ms":1000,"scope":"auto","events":"instructions,cpu-cycles"}
 *       {"id":7,"ok":true}
 *       interval_ms: 100 to 60000, or 0 for no more samples; scope: system, process, cgroup or auto (sampler.h), which it is when it
 *       is left out; events: the hardware events that are opened and counted (monitoring/event_choice.h), the others being absent from
 *       its samples; "": none, left out: all 58. Again for the same tag: it begins anew. Nothing need be applied.
 *   {"id":8,"verb":"meter","meters":"cpu,rapl","interval_ms":1000,"idle_w":40,"cpu_w":6}
 *       {"id":8,"ok":true,"opened":"cpu","refused":"rapl: no RAPL zone below /sys/class/powercap"}
 *       The meters of this machine (monitoring/meters_local.c) to be read from now on, by name, and which of them are; refused: those
 *       that are not, and why, "; " between two; both may be "". interval_ms: as of samples; 0, without meters: none is read any more.
 *       Again: it begins anew. idle_w, cpu_w: what the meter "estimate" needs; max_w: what a zone cannot take; 0 to 100000.
 *       Metering belongs to no tag.
 *   {"id":9,"verb":"launch","tag":"T","attempt":1,"steps":"…","env":"…","keep":"…","step":"…","cpus":[0,1],"log_cap":N,"memory":N,
 *    "answer":"{…}","gang":N,"mark":"TEXT","files":"HASH"}
 *       {"id":9,"ok":true}                         it is on its way: an event tells whether it is ready for its go
 *       steps, env, keep, step: base 64 of texts that each end in a NUL (launches.h); what is left out is as exec has it. answer: what its
 *       programs are answered that tell of themselves; mark: it is a session (launches.h), and how its marks begin; files: the manifest of what it is given (blobs.h), which must be here.
 *   {"id":10,"verb":"go","tag":"T"}                {"id":10,"ok":true}     its steps begin; without it, it ends with its helper. One of
 *                                                  a gang of N is told "ports":"4001,4002", as many
 *   {"id":11,"verb":"adopt","tag":"T"}             what became of it, whichever helper started it; its end is told from now on
 *       {"id":11,"ok":true,"state":"running","heard":N,"log":N,"boot_id":"…","pid":N,"start_ticks":N}
 *       {"id":11,"ok":true,"state":"ended","heard":N,"log":N,"exit":"attempt=1 …","ago_ms":N}     also "waiting", "cut" and "none": launches.h
 *   {"id":12,"verb":"tail","tag":"T","from":N,"credit":N,"accounted":N}
 *       {"id":12,"ok":true}                        what is heard of it from byte `from` on comes as events, `credit` bytes at most until
 *                                                  it is asked again; what is before `accounted` is given back to the disk
 *   {"id":13,"verb":"signal","tag":"T","hard":false}     {"id":13,"ok":true}     TERM; hard: KILL, to all that is left of it
 *   {"id":15,"verb":"say-stop","tag":"T"}          {"id":15,"ok":true}     its programs are to end at the next epoch's end
 *   {"id":16,"verb":"have","hash":"HASH","size":N}    {"id":16,"ok":true,"there":false}     is this file here?
 *   {"id":17,"verb":"put","hash":"HASH","size":N,"from":N,"data":"…"}     {"id":17,"ok":true,"there":false}
 *                                                  bytes of it in base 64, from its beginning on, one request behind the other; there: it was
 *                                                  the last, and its sum is right
 *   {"id":18,"verb":"list","tag":"T","name":"checkpoint/c-3"}     {"id":18,"ok":true,"files":"…"}
 *                                                  base 64 of a text for each file of that file or folder (folder.h)
 *   {"id":19,"verb":"read","tag":"T","name":"checkpoint/c-3","from":N,"size":N}     {"id":19,"ok":true,"data":"…"}
 *                                                  bytes of one, in base 64; at most 32 KB, fewer at its end
 *   {"id":20,"verb":"run","tag":"T-t1-1","session":"T","files":"HASH"}     a folder for a run of the session T, which runs
 *       {"id":20,"ok":true,"state":"ready","heard":0,"boot_id":"…","pid":N,"start_ticks":N}     of the session's launcher; adopt, tail, signal,
 *                                                  list, read and forget are of runs, too; there is no go
 *   {"id":21,"verb":"talk","tag":"T","credit":N}   {"id":21,"ok":true}     what the session says comes as events from when it is
 *                                                  there, `credit` bytes at most in all that this helper tells
 *   {"id":22,"verb":"say","tag":"T","data":"…"}    {"id":22,"ok":true}     base 64 of bytes of what it is told
 *   {"id":14,"verb":"forget","tag":"T"}            {"id":14,"ok":true}     its folder is removed; refused while it runs
 *   {"id":15,"verb":"look"}                        {"id":15,"ok":true,…}   what house.h draws: memory, load, which launches run
 *   {"id":16,"verb":"echo","tag":"WORD"}           {"id":16,"ok":true,"tag":"WORD"}
 *   {"id":17,"verb":"clean"}                       {"id":17,"ok":true,…}   house.h: folders of launches that are over are removed
 *   {"id":5,"verb":"stop"}                         {"id":5,"ok":true}      once everything was given back; then it exits
 *
 *   {"id":3,"ok":false,"error":"one line"}         for each of them; id is null when none could be read. An apply that fails leaves the
 *                                                  tag as if released.
 *   {"event":"changed","tag":"T",…}                unasked, with what an answer to apply has: a process came or went, or others came to use
 *                                                  its CPUs, or left them, and what was wanted was brought into force again; "error" is added when it could not be
 *
 *   {"event":"sample","tag":"T","scope":"process","t_ms":R,"dt_ms":1000.02,"missed":0,"values":"…"}
 *                                                  at each tick but the one at which sampling begins: when the interval ended, since
 *                                                  1970, and how long it was; the ticks that were missed before it, whose time it covers: nobody
 *                                                  read what was said, or we were late; the values of the features that its hello named,
 *                                                  as bytes (monitoring/sample_blob.h) in base 64
 *   {"event":"meter","meter":"rapl","state":"ok","from_ms":R,"to_ms":R2,"value":12.5,"error":0.0001}
 *                                                  what a meter read at a tick (monitoring/meter.h), by this machine's clock; value and error
 *                                                  are left out where there is none; "why" is added when it is discarded or failed. A
 *                                                  tick is missed when nobody reads what is said (meters.h)
 *
 *   {"event":"launch","tag":"T","state":"ready","boot_id":"…","pid":N,"start_ticks":N,"heard":N,"port":N}
 *                                                  it waits for its go (port: of one of a gang), and "why" its memory has no limit although it was to have one; or "busy" or
 *                                                  "refused", with "why"; later "gone"
 *   {"event":"words","tag":"T","data":"…"}         base 64 of at most 2,880 bytes that a session said; none and "why": it is hung up
 *   {"event":"bytes","tag":"T","at":N,"log":N,"data":"…"}     base 64 of at most 2,880 bytes; none when only its log has grown
 *
 * Launches survive their helper, and are found again by another one. CPUs and limits are given back on stop, end of file on stdin, TERM, INT, HUP, 30 s without a request (PIPETUNE_LEASE_MS says otherwise in
 * tests), when stdout is not read for 5 s, after 10 lines in a row that are no requests, after a line over 64 KB; and by the watchdog
 * (watch.h) when it is killed. It acts on processes of its own uid alone, and takes no pid from whoever it talks to, and no path but names below a launch's own folder.
 * PIPETUNE_SYSFS stands for /sys in tests. */
#ifndef NODE_SERVE_H
#define NODE_SERVE_H

/* argv[0] is "serve". The exit code: 0 after stop, end of file or a signal; 1 with a line on stderr; 2 wrong usage. */
int serve_run(int argc, char **argv);

#endif
