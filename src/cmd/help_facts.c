#include "cmd/help_facts.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
static const struct help_fact abouts[] = {
    { "add", NULL, "Has a study try a point besides those of its search: each hyperparameter by its name.\n"
        "It is trained to its end, and the search is not told of it.\n"
        "The study's driver makes it the next new trial; where none runs, the next one does.\n" },
    { "attach", NULL, "Follows what the driver of a study in the background prints, from its beginning to its end.\n" },
    { "best", NULL, "Tells the best finished trial by the study's metric, with its hyperparameters.\n"
        "With --checkpoint it prints the path of the trained model alone, for a script.\n" },
    { "compare", NULL, "Puts the figures of two or more studies beside each other: their best trials, time, energy, and what failed.\n" },
    { "completion", NULL, "Prints a script that a shell reads; `make install` puts it where shells look.\n"
        "Commands, options, the words that an option takes, and the names of studies are completed.\n" },
    { "diff", NULL, "Prints only what differs between two trials, of one study or of two: settings, figures, causes; of two studies their configs, "
        "versions, machines, and the files of their applications, line by line.\n" },
    { "doctor", NULL, "Looks at everything that trials need, and at every meter, one line each: ok, warn or missing, what was found, and the fix.\n"
        "It changes nothing.\n" },
    { "energy", NULL, "Divides what the meters read among nodes, trials and epochs.\n"
        "Each figure has its source, its coverage and its error; what was not measured is absent, never 0.\n" },
    { "events", NULL, "Tells of each of the 58 hardware events how it is encoded on this machine, whether it can be counted, and what share of the time.\n" },
    { "export", NULL, "Hands a study on; nothing of it is changed.\n" },
    { "experiment", NULL, "Puts the same arrivals of the same jobs to several policies, and tells how long each study waits, tunes and trains, and its joules.\n"
        "A file lists jobs (configs with weights), arrivals (a Poisson process of a load, by a seed) and policies; without arrivals it is a study of each job.\n"
        "Each policy begins with an empty model. docs/experiments.md describes the file and the report.\n" },
    { "gc", NULL, "Frees what nobody needs any more: folders of no study, checkpoints that newer ones have replaced, halves of files, sockets of "
        "the dead, and the samples of finished studies, of which the profiles stay.\n"
        "What runs is never touched.\n" },
    { "ls", NULL, "One line per study: its best trial, state, trials, time and when it began.\n"
        "With --where, one line per trial for which the condition holds: numbers and texts ('sgd') joined by = != < <= > >= ~ + - * / %, "
        "and, or, not and brackets; a ~ 'b' holds where b is a part of a.\n"
        "Names are hyperparameters, system parameters, metrics (of the last epoch), and study, trial, state, tag, metric, accuracy, loss, "
        "seconds, epochs, slots, energy_j; one with other signs stands between backticks. What a trial has no value of does not hold.\n" },
    { "model", NULL, "Looks at what studies have taught of jobs, and changes it.\n"
        "The model is kept in the store; --model FILE names one in a file instead.\n" },
    { "monitor", NULL, "Measures this machine without any study, and sends the lines to an InfluxDB until it is ended.\n"
        "What cannot be delivered is kept on disk and sent later.\n" },
    { "nodes", NULL, "Asks hosts over ssh, all at once; what is wrong with one is told below its row, and delays no other.\n"
        "Hosts are words behind the verb, or --hosts, or the nodes of --config; each is HOST, USER@HOST, the name of a list of the "
        "config's hosts, or a file with a host to a line.\n"
        "The helper of a host is pipetune-node at the path that it has here; where there is none, the one that was put there, of the same bytes.\n" },
    { "replay", NULL, "Runs policies over what was recorded, without training anything, or derives a study's decisions again.\n" },
    { "report", NULL, "Gathers all of a study: settings, epochs, energy, decisions, heat maps of the counters.\n" },
    { "retry", NULL, "Forgives what became of a failed trial's attempts: the study's driver tries it again, from its newest checkpoint; where none runs, the next one does.\n"
        "A study of the queue that is over is in the queue again.\n" },
    { "rm", NULL, "Removes a study with all that stands beside the store, or what one trial did.\n"
        "A removed trial stays in its study as failed, \"removed\", so that its number is not given to another.\n"
        "What runs is not removed.\n" },
    { "run", NULL, "Trains the trials of a study and chooses their system parameters while they train.\n"
        "The same command goes on with a study that was interrupted, whatever ended it, and only shows one that is finished.\n" },
    { "serve", NULL, "Works the queue of a store: a driver for each study whose turn it is, as a process of its own.\n"
        "Studies share the CPUs of this machine strictly by priority, then each has room for a trial, then by what each still needs.\n"
        "SIGTERM and SIGINT drain: nothing more is started, and it ends when what runs has; a second one leaves trials running.\n"
        "A server that is killed leaves drivers that go on; the next one finds them.\n" },
    { "show", NULL, "A study's trials and the best of them, or one trial with its epochs, attempts and command.\n"
        "Of a trial that runs the epoch under way, its speed and its CPUs are told as of this moment.\n" },
    { "stop", NULL, "Ends the trials of a study as Ctrl-C does, or takes it out of the queue; it can be gone on with.\n"
        "Of a trial: it is ended and gone on with no more; what it came to counts.\n" },
    { "submit", NULL, "Puts a study into the queue; what run would refuse is refused at once.\n"
        "It takes all options of run, which its driver gets, with the folder and the variables that matter; secrets are not kept.\n"
        "Where no server works the store, one is started in the background and ends when nothing is left to do.\n" },
    { "tag", NULL, "Keeps a text with a study or a trial: `ls`, `show` and their --json tell it, and `ls --where \"tag = 'good'\"` finds it; a study's counts "
        "for all its trials.\n"
        "Without a text it prints those there are, a line each.\n" },
    { "tell", NULL, "Tells of the trial that it runs in: for shell scripts that are trained by a study.\n"
        "What is told is kept although no driver watches.\n"
        "Outside of a trial it is an error, with exit code 3.\n" },
    { "trace", NULL, "Traces are HDF5 files of recorded runs, for `replay` and for others.\n"
        "`run --trace FILE` writes one of a study.\n" },
    { "version", NULL, "The version, the commit it was built from, and those of the libraries in use.\n" },
    { NULL, NULL, NULL },
};

static const struct help_fact words[] = {
    { "completion", "bash, zsh, fish", "For that shell." },
    { "export", "csv STUDY DIR", "STUDY.trials.csv, .epochs.csv, .metrics.csv, .iterations.csv, .settings.csv (what was in force, when), .energy.csv, and "
        ".timeline.csv, which `trace import --format timeline` and `replay offline` read; of a study with policy v1 or v2 a row "
        "of TuneV1Load_1_CORES.csv, as `replay online` reads it. Old files are replaced." },
    { "export", "mlflow STUDY", "To an MLflow server (3.x): a run for the study and one in it for each trial, with hyperparameters, metrics, settings, "
        "decisions and joules. What the server has is not sent again: the same command goes on." },
    { "help", "COMMAND", "What one command does, with its options." },
    { "help", "config", "The keys of a config, the system parameters, the searches." },
    { "model", "ls", "The classes of jobs, one line each." },
    { "model", "show", "Clusters and classes with their figures." },
    { "model", "explain TRIAL | STUDY/TRIAL", "Which features decided what a trial was recognised as, and what was near." },
    { "model", "train TRACE…", "Learns from the samples of traces." },
    { "model", "import FILE", "Takes a model from a file, ours or scikit-learn's, into the store or, with -o, into another file." },
    { "model", "export", "Writes the store's model, to take it elsewhere." },
    { "model", "predict FILE", "The cluster of each vector in the file." },
    { "model", "forget [CLASS]", "Forgets a class, a cluster, or all: such jobs are searched anew." },
    { "nodes", "ls", "Versions, CPUs, memory, load, which launches run there, how far the clock is ahead, how long connecting takes." },
    { "nodes", "echo", "A word to each helper and back, and how long that takes." },
    { "nodes", "put", "Copies pipetune-node to ~/.pipetune-node/SHA256/ where it is not there yet, checks its sum, and runs it once." },
    { "nodes", "clean", "Removes what put has made, and the folders of launches that are over; links and what is none of ours stay." },
    { "replay", "offline TRACE", "What each policy would have cost on recorded jobs, from one plain run each to an oracle." },
    { "replay", "online DIR", "The same for recorded queues." },
    { "replay", "search TABLE", "How near to the best of recorded curves each search comes, and after how many epochs." },
    { "replay", "forecast TABLE", "How well the ends of recorded curves are foretold from their beginnings." },
    { "replay", "decisions STUDY | TRACE", "Derives each decision of the tuner from what it was told, and compares." },
    { "show", "STUDY", "All of a study." },
    { "show", "STUDY/N", "One trial; also as STUDY N." },
    { "trace", "import FILE", "Recorded runs of another form into a trace." },
    { "trace", "export STUDY --format curves", "The learning curves of a study, for `replay search`." },
    { "trace", "export FILE | STUDY --format jobs", "What was counted in the first 40 s of each run, and how long it took, for bigdl/apps/regress.py: HDF5, docs/formats.md." },
    { "trace", "info FILE", "What is in a trace." },
    { "trace", "export FILE", "A trace as CSV or JSON." },
    { NULL, NULL, NULL },
};

static const struct help_fact exits[] = { /* by their codes */
    { "run attach", "0", "At least one trial finished." },
    { "pipetune", "0", "At least one trial finished, or all is well." },
    { "*", "0", "All is well." },
    { "run", "1", "No trial finished; or the trace was not written, or lines for an InfluxDB were left behind." },
    { "export", "1", "The MLflow server was not there, or refused something." },
    { "best", "1", "No trial of the study is finished yet, or it has no checkpoint." },
    { "monitor", "1", "Lines were left behind." },
    { "nodes", "1", "A host did not answer, or not as it should." },
    { "replay", "1", "A decision was derived otherwise than it was stored (decisions)." },
    { "pipetune", "1", "No trial finished, or data was left behind." },
    { "*", "2", "Wrong usage, or a mistake in the config: the error names file, line and key." },
    { "doctor", "3", "Something is missing without which no trial can run." },
    { "*", "3", "This machine lacks something: the error, or pipetune doctor, says what and how to mend it." },
    { "experiment", "130", "Interrupted: the same command goes on." },
    { "pipetune run", "130", "Interrupted, or left running after a hangup: the same command goes on." },
    { NULL, NULL, NULL },
};

#define LOOKS "add attach best compare diff doctor energy export gc ls model replay report retry rm run serve show stop submit tag"

static const struct help_fact variables[] = {
    { "pipetune " LOOKS, "PIPETUNE_STORE", "The store, when neither --store nor the config names one (default ./pipetune.db)." },
    { "pipetune doctor run", "PIPETUNE_HOME", "The folder that holds PipeTune's own conf/ and bigdl/ (default: where the program is, or its share/pipetune)." },
    { "pipetune doctor run", "PIPETUNE_DATA", "$PIPETUNE_DATA in a BigDL file (default ./.pipetune/data)." },
    { "pipetune doctor run", "SPARK_HOME", "Spark, when the config does not name it (default ./.pipetune/spark, else spark-submit on PATH)." },
    { "pipetune doctor run", "JAVA_HOME", "Java, when the config does not name it (default: java on PATH)." },
    { "pipetune doctor run", "BIGDL_HOME", "$BIGDL_HOME in a BigDL file (default ./.pipetune/bigdl)." },
    { "pipetune run", "PYSPARK_PYTHON", "The Python of driver and executors, when neither the study nor the BigDL file names one (default: the one that set-up made)." },
    { "pipetune run", "SPARK_LOCAL_IP", "Is 127.0.0.1 for trials on one machine when it is not set: a host name that does not resolve would stop Spark." },
    { "pipetune run", "PIPETUNE_LAUNCH", "Set for all that an attempt starts, so that nothing of it is overlooked." },
    { "pipetune tell", "PIPETUNE_TELL", "The socket over which a trial's programs tell of themselves; set in what run starts." },
    { "pipetune doctor", "TMPDIR", "Where doctor --try trains (default /tmp)." },
    { "pipetune monitor", "STATE_DIRECTORY", "Where lines wait for the server; systemd sets it (default ./pipetune-monitor)." },
    { "pipetune compare diff energy events experiment ls model replay report show trace", "COLUMNS", "How wide tables may be (default: as the terminal, 100 where there is none)." },
    { NULL, NULL, NULL },
};

static const struct help_fact files[] = {
    { "pipetune " LOOKS, "pipetune.db", "The store." },
    { "pipetune attach run serve submit", "pipetune.d/STUDY/driver.log", "What a driver in the background prints." },
    { "pipetune serve submit", "pipetune.d/queue-STORE.lock", "Locked while a server works that store's queue; queue-STORE.log has the lines of one in the background." },
    { "pipetune gc retry rm run", "pipetune.d/STUDY/driver.lock", "Beside the store; locked while a driver runs the study." },
    { "pipetune gc rm run show", "pipetune.d/STUDY/TRIAL/log", "What the application printed, all attempts one after the other; log.1 is what came before, and "
      "what was before that is gone (--log-mb)." },
    { "pipetune best gc rm run", "pipetune.d/STUDY/TRIAL/checkpoint/", "BigDL's checkpoints, from which a trial is continued." },
    { "pipetune run", "pipetune.d/STUDY/TRIAL/exit", "How the last attempt ended." },
    { "pipetune doctor run", ".pipetune/", "Spark, BigDL, Python and data, where ./run-pipetune.sh setup puts them." },
    { "pipetune run", "conf/pipetune.conf", "A config to begin with, and bigdl/config/ BigDL files; installed in share/pipetune." },
    { "pipetune monitor", "conf/monitor.json", "A config of the monitor; conf/README.md has the service and the rules for RAPL." },
    { "pipetune model", "examples/demo-model.json", "What the demo taught elsewhere, to be imported." },
    { "pipetune experiment", "NAME.experiment/", "What came of NAME.json: report.html, report.json, response.svg, csv/; simulated/ holds the same of --simulate." },
    { "pipetune replay trace", "examples/lenet-grid.h5", "A trace to try it on." },
    { NULL, NULL, NULL },
};

static const struct help_fact examples[] = {
    { "pipetune doctor", "pipetune doctor", "What works here, and the fix for what does not." },
    { "pipetune run", "pipetune run --config conf/pipetune.conf --dry-run", "Each trial's spark-submit command, and nothing else." },
    { "pipetune run", "pipetune run --config conf/pipetune.conf --name demo --max-trials 4 --epochs 2", "Four trials of two epochs each, as the study demo." },
    { "pipetune run", "pipetune run --config conf/pipetune.conf --setting cores=4,memory=8", "Trials under another setting." },
    { "run", "pipetune run --from demo/2", "That trial again, with the code and the config that it had." },
    { "pipetune ls", "pipetune ls", "The studies." },
    { "ls", "pipetune ls --where 'accuracy > 0.95 and batch_size = 128'", "The trials of all studies for which that holds." },
    { "ls", "pipetune ls --json | jq -r '.[].study'", "Their names, in a script." },
    { "pipetune show", "pipetune show demo", "The study's trials, and the best." },
    { "pipetune show", "pipetune show demo/2", "Its second trial: epochs, attempts, and the command." },
    { "pipetune show", "pipetune show demo --decisions", "What was decided, when and why." },
    { "pipetune show", "tail -F $(pipetune show demo/2 --log)", "What the trial prints." },
    { "pipetune tell", "pipetune tell accuracy=0.93 loss=0.21 --epoch 3", "What a shell script says at the end of its third epoch." },
    { "tell", "pipetune tell loss=0.4 --step 120 --records 128", "A training step." },
    { "tell", "pipetune tell --checkpoint model-3.bin --epoch 3", "A checkpoint that is written whole." },
    { "pipetune report", "pipetune report demo --html demo.html", "All of the study as one page for a browser." },
    { "report", "pipetune report demo --csv -o demo.csv", "Its trials and epochs for a spreadsheet." },
    { "pipetune compare", "pipetune compare demo demo@2", "Two studies side by side." },
    { "pipetune diff", "pipetune diff demo/1 demo/2", "What differs between two trials." },
    { "pipetune submit", "pipetune submit study.conf", "Into the queue." },
    { "submit", "pipetune submit study.conf --priority 5 --at 18:30", "Before others, but not before that time." },
    { "pipetune attach", "pipetune attach demo", "Its progress, until it ends." },
    { "pipetune stop", "pipetune stop demo", "The study ends, and can be gone on with." },
    { "stop", "pipetune stop demo/3", "Its third trial alone." },
    { "add", "pipetune add demo batch_size=128 learning_rate=0.02", "A point that looks promising." },
    { "serve", "pipetune serve --cpus 6", "Two of eight CPUs are left to others." },
    { "best", "cp $(pipetune best demo --checkpoint) model.bigdl", "The trained model of the best trial." },
    { "completion", "pipetune completion bash >~/.local/share/bash-completion/completions/pipetune", "For one user's bash." },
    { "completion", "source <(pipetune completion bash)", "For this bash alone." },
    { "completion", "pipetune completion fish >~/.config/fish/completions/pipetune.fish", "For one user's fish." },
    { "doctor", "pipetune doctor --try", "The same, and a minute of training." },
    { "energy", "pipetune energy demo", "Joules per node, trial and epoch." },
    { "energy", "pipetune energy demo/2 --carbon 300 --price 0.3", "Of one trial, as grams and money, too." },
    { "events", "pipetune events", "All 58." },
    { "export", "pipetune export csv demo tables/", "The study as CSV files, for a spreadsheet or a replay." },
    { "experiment", "pipetune experiment examples/experiments/lenet.json --simulate", "Nine studies of two jobs over a recorded grid, in a second." },
    { "experiment", "pipetune experiment examples/experiments/lenet.json --skip-idle", "The same, trained on this machine; the same command goes on after Ctrl-C." },
    { "export", "pipetune export mlflow demo --url http://127.0.0.1:5000", "The study to an MLflow server." },
    { "gc", "pipetune gc --dry-run", "How much would be freed." },
    { "help", "pipetune help run", "What run does, with its options." },
    { "help", "pipetune help config", "The keys of a config." },
    { "pipetune help", "pipetune help run --man | man -l -", "The manual page of a command." },
    { "model", "pipetune model show", "What is known of jobs." },
    { "model", "pipetune model explain demo/2", "What a trial was recognised as, and why." },
    { "model", "pipetune model import examples/demo-model.json", "What a recorded demo taught elsewhere." },
    { "monitor", "pipetune monitor --print --once", "One round of samples, to look at." },
    { "monitor", "pipetune monitor --url http://127.0.0.1:8086 --database energy", "To an InfluxDB, until it is ended." },
    { "nodes", "pipetune nodes ls worker1 me@worker2", "Two hosts." },
    { "nodes", "pipetune nodes put --config study.conf --hosts lab", "The helper to all hosts of a list." },
    { "replay", "pipetune replay offline examples/lenet-grid.h5 --epochs 10 --repeat 3", "Policies on a recorded grid." },
    { "replay", "pipetune replay search curves.jsonl --algorithm random,tpe --stop none,halving --repeats 10", "Searches on recorded curves." },
    { "replay", "pipetune replay decisions demo", "Each decision of a study, derived again." },
    { "retry", "pipetune retry demo/2", "One failed trial again." },
    { "rm", "pipetune rm demo --yes", "Without asking." },
    { "tell", "pipetune tell loss=0.31 accuracy=0.9 --epoch 3", "Epoch 3 is over, with these figures." },
    { "tell", "pipetune tell --checkpoint model.bin --epoch 3", "What the trial can go on from." },
    { "tag", "pipetune tag demo/2 good", "A note, which `pipetune ls --where \"tag = 'good'\"` finds." },
    { "trace", "pipetune trace info examples/lenet-grid.h5", "What is in it." },
    { "trace", "pipetune trace import --format timeline runs.csv -o runs.h5", "Recorded runs as a trace." },
    { "version", "pipetune version", "This program and its libraries." },
    { NULL, NULL, NULL },
};
/* clang-format on */

/* clang-format off */
const struct help_kind help_kinds[] = {
    { "WORDS", "words", "words", words },
    { "EXIT STATUS", "exit codes", "exits", exits },
    { "ENVIRONMENT", "environment", "environment", variables },
    { "FILES", "files", "files", files },
    { "EXAMPLES", "examples", "examples", examples },
    { NULL, NULL, NULL, NULL },
};
/* clang-format on */

static bool names(const char *pages, const char *page)
{
    size_t len = strlen(page);
    for (const char *at = pages; (at = strstr(at, page)); at += len)
        if ((at == pages || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return strcmp(pages, "*") == 0;
}

const char *help_about(const char *page)
{
    const struct help_fact *f = abouts;
    while (f->pages && !names(f->pages, page))
        f++;
    return f->pages ? f->text : "";
}

bool help_is_on(const struct help_fact *facts, const struct help_fact *f, const char *page)
{
    if (!names(f->pages, page))
        return false;
    for (; facts < f; facts++)
        if (strcmp(facts->tag, f->tag) == 0 && names(facts->pages, page))
            return false;
    return true;
}
