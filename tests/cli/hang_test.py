#!/usr/bin/python3
"""opwatch hang on files that were written by hand: logs of PyTorch's watchdog, torchrun and NCCL, dumps of py-spy, messages between two ranks,
groups that wait for each other, and folders with too much, too little or damaged content."""
import gzip
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
from support.shown import shown  # noqa: E402

BIN = os.environ.get("OPWATCH_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/release/opwatch"))
NOW = 1_760_000_000_000_000_000


def entry(number, name="all_reduce", state="completed", group="0", about="default_pg", size=64, order=None, **more):
    e = {"record_id": number if order is None else order, "pg_id": 0, "process_group": [group, about], "collective_seq_id": number, "p2p_seq_id": 0, "op_id": number,
         "profiling_name": "nccl:" + name, "time_created_ns": NOW + number * 10**8, "input_sizes": [[size]], "input_dtypes": ["Float"],
         "output_sizes": [[size]], "output_dtypes": ["Float"], "state": state, "time_discovered_started_ns": None,
         "time_discovered_completed_ns": None, "retired": state == "completed", "timeout_ms": 600000, "is_p2p": False, "frames": []}
    e.update(more)
    return e


def dump(entries, groups=None, **more):
    groups = groups or {"0": ("default_pg", [0, 1])}
    return {"version": "2.9", "pg_config": {n: {"name": n, "desc": d, "ranks": str(r)} for n, (d, r) in groups.items()}, "entries": entries, **more}


def message(number, name, state="scheduled", size=64):
    return entry(number, name, state, p2p_seq_id=number, collective_seq_id=0, is_p2p=True, size=size)


class Hang(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if isinstance(content, dict):
            content = json.dumps(content).encode()
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        return path

    def run_hang(self, *paths):
        return subprocess.run([BIN, "hang", *(paths or (self.folder,)), "--json"], capture_output=True, text=True, check=False, timeout=60)

    def ask(self, *paths):
        run = self.run_hang(*paths)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def concludes(self, conclusion, ranks, *paths, **more):
        answer = self.ask(*paths)
        self.assertEqual((answer["conclusion"], answer["ranks"]), (conclusion, ranks), (answer["sentence"], answer["why"], answer["notes"]))
        for key, value in more.items():
            self.assertEqual(answer[key], value, (key, answer["sentence"], answer["why"]))
        return answer

    def test_narrow_terminal(self):
        for r in range(2):
            self.write(f"nccl_trace_rank_{r}.json", dump([entry(n, state="completed" if n < 5 else "scheduled") for n in range(1, 6 - r)]))
        text = shown([BIN, "hang", self.folder], 80)
        self.assertLessEqual(max(map(len, text.splitlines())), 80, text)
        self.assertIn("rank 1 did not enter all_reduce 5", text)

    def test_redact(self):
        """No name of the user is left in any output; the answer is the same."""
        secret = ("secretdir", "secretjob", "secret_load", "secret_why", "secretgroup", "secretbroken")
        self.write("secretdir/secretjob_rank0.txt", "Process 1: python3 /home/secretdir/secretjob.py --rank=0\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
                   'Thread 1 (idle): "MainThread"\n    all_reduce (/home/secretdir/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:1534)\n'
                   "    <module> (/home/secretdir/secretjob.py:120)\n")
        self.write("secretdir/secretjob_rank1.txt", "Process 2: python3 /home/secretdir/secretjob.py --rank=1\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
                   'Thread 2 (active): "MainThread"\n    secret_load (/home/secretdir/secretjob.py:88)\n    <module> (/home/secretdir/secretjob.py:120)\n')
        self.write("secretdir/secretbroken.json", "{ \"entries\": [")
        plain = self.ask()
        for words in ((), ("--json",)):
            run = subprocess.run([BIN, "hang", self.folder, "--redact", *words], capture_output=True, text=True, check=False, timeout=60)
            self.assertEqual(run.returncode, 0, run.stderr)
            for word in secret:
                self.assertNotIn(word, run.stdout.replace(self.folder, ""))
        hidden = json.loads(run.stdout)
        self.assertIn("secret_load", plain["sentence"])
        for key in ("conclusion", "ranks", "certain", "collective", "sequence"):
            self.assertEqual(hidden[key], plain[key], key)
        self.assertEqual([r["state"] for r in hidden["rows"]], [r["state"] for r in plain["rows"]])
        log = self.write("secretdir/secretjob.log", "[rank1]: ValueError: secret_why in /home/secretdir\n")
        run = subprocess.run([BIN, "hang", self.folder, log, "--redact", "--json"], capture_output=True, text=True, check=False, timeout=60)
        self.assertNotIn("secret_why", run.stdout)

    # ---- dumps ----

    def test_where_the_rank_is(self):
        """The stack of another file is that of the rank that did not come."""
        for rank in range(2):
            self.write(f"rank{rank}.json", dump([entry(n) for n in range(1, 41)] + ([entry(41, state="started")] if rank == 0 else [])))
        stack = self.write("stack.txt", 'Process 9: python3 train.py --rank 1\nPython v3.11.2 (/usr/bin/python3.11)\n\nThread 9 (active): "MainThread"\n'
                           "    read (/usr/lib/python3.11/socket.py:7)\n    load_batch (train.py:88)\n    <module> (train.py:120)\n")
        answer = self.concludes("hang", [1], self.folder + "/rank0.json", self.folder + "/rank1.json", stack, certain=True,
                                collective="all_reduce", group="default_pg", sequence=41, world_size=2)
        self.assertEqual(answer["sentence"], "rank 1 did not enter all_reduce 41 of group default_pg; it is in train.py:88 load_batch")
        self.assertEqual([(r["rank"], r["state"], r["last_completed"], r["first_missing"], r["stack"]) for r in answer["rows"]],
                         [(0, "waiting", 40, 41, None), (1, "not_entered", 40, 41, "train.py:88 load_batch")])

    def test_waits_are_followed_across_groups(self):
        """0 waits for 1 in one group, 1 for 2 in another, and 2 for none."""
        groups = {"0": ("default_pg", [0, 1, 2]), "a": ("tp", [0, 1]), "b": ("pp", [1, 2])}
        done = [entry(1)]
        for rank, more in enumerate(([entry(1, state="started", group="a", about="tp", order=2)],
                                     [entry(1, state="started", group="b", about="pp", order=2)], [])):
            ours = {n: g for n, g in groups.items() if rank in g[1]}
            self.write(f"{rank}.json", dump(done + more, ours))
        self.concludes("hang", [2], certain=True, group="pp", sequence=1)

    def test_scheduled_only(self):
        """Starts are recorded, so a rank that only scheduled did not start; nothing else is under way on it."""
        for rank in range(3):
            done = [entry(n, time_discovered_started_ns=NOW + n * 10**8, time_discovered_completed_ns=NOW + n * 10**8 + 5) for n in (1, 2, 3)]
            last = entry(4, state="scheduled") if rank == 1 else entry(4, state="started", time_discovered_started_ns=NOW + 4 * 10**8 + 3)
            self.write(f"{rank}.json", dump(done + [last], {"0": ("default_pg", [0, 1, 2])}))
        self.concludes("hang", [1], sequence=4)

    def test_one_call_after_the_others_came(self):
        """Rank 1 completed one more call of another group after rank 0 had come, and then nothing: that does not say that it goes on."""
        groups = {"0": ("default_pg", [0, 1]), "1": ("other", [1])}
        self.write("0.json", dump([entry(1), entry(2, state="started")], {"0": groups["0"]}))
        other = entry(1, group="1", about="other", order=7, time_created_ns=NOW + 2 * 10**8 + 1000)
        self.write("1.json", dump([entry(1), other], groups))
        self.concludes("hang", [1])

    def test_started_and_scheduled(self):
        """Each has started one and scheduled the other: a deadlock of devices, although all have entered all."""
        groups = {"0": ("default_pg", [0, 1]), "a": ("tp", [0, 1])}
        for rank in range(2):
            first, second = ("0", "a") if rank == 0 else ("a", "0")
            about = {"0": "default_pg", "a": "tp"}
            self.write(f"{rank}.json", dump([entry(1, state="started", group=first, about=about[first], order=1),
                                             entry(1, state="scheduled", group=second, about=about[second], order=2)], groups))
        self.concludes("deadlock", [0, 1], certain=True)

    def test_a_device_that_does_not_start(self):
        for rank in range(2):
            self.write(f"{rank}.json", dump([entry(1), entry(2, state="started" if rank else "scheduled", time_discovered_started_ns=NOW if rank else None),
                                             *([entry(3, state="scheduled")] if rank else [])] +
                                            ([] if rank else [entry(1, state="started", group="x", about="self", order=0)])))
        self.assertEqual(self.ask()["conclusion"], "hang")

    def test_messages(self):
        self.write("0.json", dump([message(1, "send 0->1")]))
        self.write("1.json", dump([entry(1)]))
        self.concludes("hang", [1], collective="send")

    def test_messages_that_wait_for_each_other(self):
        self.write("0.json", dump([message(1, "recv 0<-1")]))
        self.write("1.json", dump([message(1, "recv 1<-0")]))
        self.concludes("deadlock", [0, 1])

    def test_messages_of_other_sizes(self):
        self.write("0.json", dump([message(1, "send 0->1", size=10)]))
        self.write("1.json", dump([message(1, "recv 1<-0", size=20)]))
        self.concludes("mismatch", [0, 1], certain=False)

    def test_a_tie_is_not_certain(self):
        self.write("0.json", dump([entry(1, "broadcast", "started")]))
        self.write("1.json", dump([entry(1, "all_reduce", "started")]))
        self.concludes("mismatch", [0, 1], certain=False)

    def test_uneven_sizes_are_no_mismatch(self):
        for name in ("all_to_all", "gather", "all_gather"):
            for rank in range(2):
                self.write(f"{rank}.json", dump([entry(1, name, "started", size=10 + rank)]))
            self.concludes("none", [])

    def test_what_is_older_than_the_buffer_is_not_missing(self):
        self.write("0.json", dump([entry(n) for n in range(100, 110)] + [entry(1, state="started", group="a", about="tp", order=50)],
                                  {"0": ("default_pg", [0, 1]), "a": ("tp", [0, 1])}))
        self.write("1.json", dump([entry(n) for n in range(100, 110)], {"0": ("default_pg", [0, 1]), "a": ("tp", [0, 1])}))
        self.concludes("cannot_tell", [], certain=False)

    def test_the_rank_is_in_the_content(self):
        """Names are swapped: messages and groups say which rank a dump is of."""
        groups = [{"0": ("default_pg", [0, 1, 2, 3]), f"t{r // 2}": ("tp", [r // 2 * 2, r // 2 * 2 + 1]), f"d{r % 2}": ("dp", [r % 2, r % 2 + 2])} for r in range(4)]
        for rank in range(4):
            self.write(f"nccl_trace_rank_{3 - rank}", pickle.dumps(dump([entry(1)] + ([entry(2, state="started")] if rank != 1 else []), groups[rank])))
        answer = self.concludes("hang", [1], certain=True)
        self.assertEqual({r["rank_from"] for r in answer["rows"]}, {"groups"})

    def test_status_of_a_torn_dump(self):
        """What the dump says about the group as a whole counts, although its entries are cut off."""
        self.write("0.json", dump([entry(1), entry(2, state="started")]))
        whole = dump([entry(n) for n in (1, 2)])
        whole = {"pg_config": whole["pg_config"], "pg_status": {"0": {"last_enqueued_collective": 1, "last_completed_collective": 1}}, "entries": whole["entries"]}
        text = json.dumps(whole).encode()
        self.write("1.json", text[:text.rindex(b'{"record_id"') + 30])
        answer = self.concludes("hang", [1], certain=False)
        self.assertEqual(answer["files_torn"], 1)

    def test_mixed_jobs_duplicates_and_others(self):
        for rank in range(2):
            self.write(f"a/{rank}.json", dump([entry(1)] + ([entry(2, state="started")] if rank == 0 else [])))
        self.write("a/7.json", dump([entry(9, state="started")], {"0": ("default_pg", [0, 1, 2, 3, 4, 5, 6, 7])}))
        self.write("a/old/0.json", dump([entry(1)]))
        self.write("a/empty.pickle", b"")
        self.write("a/notes.txt", "restarted twice\n")
        answer = self.concludes("hang", [1], certain=False)
        self.assertEqual((answer["other_jobs"], answer["duplicates"], answer["files_unreadable"]), (1, 1, 1), answer["notes"])

    def test_compressed(self):
        for rank in range(2):
            self.write(f"{rank}.json.gz", gzip.compress(json.dumps(dump([entry(1, state="started" if rank else "completed")])).encode()))
        self.assertEqual(self.ask()["files_read"], 2)

    def test_unreadable(self):
        path = self.write("x.pickle", b"\x80\x02}q\x00X\x09\x00\x00\x00pg_configq\x01")
        run = self.run_hang(path)
        self.assertEqual(run.returncode, 1, run.stdout)
        self.assertIn("x.pickle", run.stderr)
        self.assertEqual(self.run_hang(self.folder + "/none").returncode, 1)

    # ---- logs ----

    def log(self, rank, work, op="ALLREDUCE", enqueued=None, elements=64):
        return (f"[rank{rank}]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={work}, "
                f"OpType={op}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) ran for 600020 milliseconds before timing out.\n"
                f"[rank{rank}]:[E626 06:24:44.9 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Exception (either an error or timeout) "
                f"detected by watchdog at work: {work}, last enqueued NCCL work: {enqueued or work}, last completed NCCL work: {work - 1}.\n")

    def test_watchdog(self):
        late = ("[rank2]:[E626 06:24:45.1 ProcessGroupNCCL.cpp:1500] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due to a collective timeout "
                "from rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 807, last completed NCCL work: 807.\n")
        self.write("train.log", "epoch 1\n" + self.log(0, 808) + self.log(1, 808, enqueued=811) + late + self.log(3, 808))
        answer = self.concludes("hang", [2], certain=True, collective="all_reduce", sequence=808, group="default_pg")
        self.assertIn("gave up", answer["why"])

    def test_watchdog_of_all_ranks(self):
        self.write("train.log", "".join(self.log(r, 808) for r in range(4)))
        self.concludes("hang", [], certain=False, sequence=808)

    def test_watchdog_mismatch(self):
        self.write("train.log", "".join(self.log(r, 808, "BROADCAST" if r == 3 else "ALLREDUCE") for r in range(4)))
        self.concludes("mismatch", [3])

    def test_a_process_that_ended(self):
        self.write("train.log", "[rank2]: Traceback (most recent call last):\n[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory.\n" +
                   "".join(self.log(r, 808) for r in (0, 1, 3)))
        answer = self.concludes("crash", [2], certain=True)
        self.assertIn("OutOfMemoryError", answer["sentence"])

    def test_torchrun(self):
        self.write("train.log", "E0101 torch.distributed.elastic.multiprocessing.api: failed (exitcode: -9) local_rank: 1 (pid: 4113) of binary: /usr/bin/python3\n" +
                   self.log(0, 5))
        self.concludes("crash", [1])

    def test_nccl(self):
        lines = []
        for rank in range(3):
            head = f"node:{100 + rank}:{200 + rank} [{rank}] NCCL INFO "
            lines.append(head + f"ncclCommInitRank comm 0x5{rank} rank {rank} nranks 3 cudaDev {rank} nvmlDev {rank} busId 1000 commId 0xabc - Init COMPLETE\n")
            for call in range(0x1a if rank == 1 else 0x1b):
                lines.append(head + f"AllReduce: opCount {call:x} sendbuff 0x7f recvbuff 0x7f count 1024 datatype 7 op 0 root 0 comm 0x5{rank} [nranks=3] stream 0x1\n")
        self.write("nccl.log", "".join(lines))
        self.concludes("hang", [1], certain=False, sequence=0x1a)

    # ---- stacks ----

    def test_pyspy_json(self):
        for rank in range(3):
            frames = [{"name": "sleep_here", "filename": "/x/train.py", "module": None, "short_filename": "train.py", "line": 7, "locals": None}]
            if rank != 2:
                frames.insert(0, {"name": "barrier", "filename": "/x/torch/distributed/distributed_c10d.py", "short_filename": "torch/distributed/distributed_c10d.py", "line": 3})
            self.write(f"{rank}.json", json.dumps([{"pid": 10 + rank, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 10, "active": True, "owns_gil": False,
                                                    "frames": frames, "process_info": {"pid": 10 + rank, "command_line": f"python3 train.py --rank={rank}", "parent": None}}]))
        self.concludes("hang", [2], certain=False, collective="barrier", sequence=None)


if __name__ == "__main__":
    unittest.main()
