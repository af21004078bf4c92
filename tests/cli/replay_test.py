#!/usr/bin/python3
"""path, what-if and advise on real recordings: critical paths that were checked by hand, predictions that were measured, first findings."""
import glob
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(os.environ.get("OPWATCH_SRC", pathlib.Path(__file__).resolve().parents[2]))
BIN = os.environ.get("OPWATCH_BIN", str(ROOT / "build/release/opwatch"))
CORPUS = os.environ.get("OPWATCH_CORPUS")


def ask(command, name, *args):
    done = subprocess.run([BIN, command, os.path.join(CORPUS, name), *args, "--json"], capture_output=True, timeout=300)
    if done.returncode:
        raise AssertionError(f"{command} {name}: exit {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def findings(answer):
    return [row for row in answer["rows"] if row["checked"] and row["severity"] in ("medium", "high")]


@unittest.skipUnless(CORPUS, "OPWATCH_CORPUS is not set")
class Paths(unittest.TestCase):
    def path(self, name):
        answer = ask("path", name)
        self.assertEqual(sum(row["dur_ns"] for row in answer["rows"]), answer["step_ns"])
        return answer

    def on_path(self, answer, op):
        return [(row["kind"], row["dur_ns"]) for row in answer["rows"] if op in (row["op"] or "")]

    def test_event_synchronize(self):
        """Four kernels, but the host waits for one: spin_kernel [3037, 3073) us ends inside cudaEventSynchronize [3047, 3081), so the path goes
        through its launch [3027, 3036), 1 us of latency, the 36 us of the kernel and the 8 us that are left of the call. The copy [2935, 2937) ends
        inside its cudaMemcpyAsync [2917, 2946): 18 us of the call, 2 us of the copy, and the rest of the call. The others run beside host code."""
        answer = self.path("kineto/hta-event_sync.json.gz")
        self.assertEqual(answer["step_ns"], 3154000)
        self.assertEqual(self.on_path(answer, "spin_kernel"), [("latency", 1000), ("kernel", 36000)])
        self.assertEqual(self.on_path(answer, "Memcpy DtoH"), [("device_to_host", 2000)])
        self.assertEqual(self.on_path(answer, "cudaEventSynchronize"), [("synchronisation", 8000)])
        self.assertEqual(self.on_path(answer, "vectorized_elementwise"), [])
        self.assertEqual(self.on_path(answer, "reduce_kernel"), [])
        self.assertEqual(answer["unexplained_ns"], 0)
        self.assertEqual(answer["inferred_edges"], 0, "the trace says what each call waits for")

    def test_device_synchronize_of_several_streams(self):
        """Three products of 123 us on three streams. Only the last one, [19794, 19917) on stream 24, ends inside the final cudaDeviceSynchronize
        [19910, 19930): it and the 13 us that are left of the call are on the path. The host's pause of 18558 us in between hides the others."""
        answer = self.path("kineto/hta-event_sync_multi_stream.json.gz")
        self.assertEqual(answer["step_ns"], 19930000)
        self.assertEqual(self.on_path(answer, "sgemm"), [("latency", 1000), ("kernel", 123000)])
        self.assertEqual(self.on_path(answer, "cudaDeviceSynchronize"), [("synchronisation", 13000)])
        self.assertIn(18558000, [row["dur_ns"] for row in answer["rows"] if row["kind"] == "host_gap"])

    def test_recorded_waits(self):
        """By wait_on_stream and wait_on_cuda_event_record_corr_id: in hta-event_sync the call 1536 waits for event record 1533 on stream 7, before which
        that stream was given spin_kernel (1526); cudaStreamSynchronize 1512 for the copy 1511. In hta-event_sync_multi_stream, stream 24 waits (1389) for
        record 1385 on stream 20, whose last work before is the product 27; the first work of stream 24 afterwards is the memset 1411. Queries
        (1537, 24, 54, 1410) wait for nothing."""
        for name, want in (("hta-event_sync", [(1511, 1512), (1526, 1536)]), ("hta-event_sync_multi_stream", [(27, 1411)])):
            with self.subTest(name):
                done = subprocess.run([BIN, "sql", os.path.join(CORPUS, f"kineto/{name}.json.gz"), "--json",
                                       "SELECT s.correlation, d.correlation FROM link l JOIN event s ON s.id = l.src_id JOIN event d ON d.id = l.dst_id "
                                       "WHERE l.kind = 'wait' ORDER BY ALL"], capture_output=True, text=True, check=True)
                rows = [tuple(row.values()) for row in json.loads(done.stdout)["rows"]]
                self.assertEqual(rows, want)

    def test_first_steps(self):
        """One step of 40 s each, which is initialisation: the first cudaDeviceGetStreamPriorityRange of each creates the context, and takes most of the
        path. The device works for less than 70 ms, of which copies that block the host are on the path."""
        for name in ("kineto/hta-simple_add.json.gz", "kineto/hta-alexnet.json.gz"):
            with self.subTest(name):
                answer = self.path(name)
                start = sum(ns for _, ns in self.on_path(answer, "cudaDeviceGetStreamPriorityRange"))
                self.assertGreater(start, 0.5 * answer["step_ns"])
                self.assertLess(sum(row["dur_ns"] for row in answer["rows"] if row["kind"] == "kernel"), 70e6)
                advice = ask("advise", name)
                self.assertEqual(findings(advice), [], "warm-up is not advice")
                self.assertIn("initialization", [row["rule"] for row in advice["rows"] if row["checked"]])

    def test_a_path_is_as_long_as_what_it_describes(self):
        """The steps view says how long a step or the recording is; the path neither exceeds that nor leaves most of it out."""
        for name in sorted(glob.glob("nsys-sqlite/*", root_dir=CORPUS) + glob.glob("xplane/*", root_dir=CORPUS) +
                           glob.glob("onnxruntime/*", root_dir=CORPUS) + ["kineto/hta-triton.json.gz", "kineto/hta-event_sync.json.gz"]):
            with self.subTest(file=name):
                path = ask("path", name)
                if path["refused"]:
                    continue
                whole = ask("what-if", name, "op:^nothing$*1")["base_step_ns"]
                steps = {row["step"]: row["duration_ns"] for row in ask("steps", name)["rows"]}
                whole = steps.get(path["step"], whole)
                self.assertLessEqual(path["step_ns"], whole)
                self.assertEqual(sum(row["dur_ns"] for row in path["rows"]), path["step_ns"])
                self.assertGreaterEqual(path["step_ns"], 0.9 * whole)

    def test_phases_of_a_path_are_its_kinds(self):
        name = "kineto/hta-event_sync.json.gz"
        self.assertEqual(ask("path", name, "--by", "phase")["rows"], ask("path", name, "--by", "kind")["rows"])

    def test_a_refusal_is_an_answer(self):
        answer = ask("path", "kineto/hta-large_integer.json.gz")
        self.assertEqual(answer["rows"], [])
        self.assertIn("known launch", answer["refused"])
        for key in ("step", "step_ns", "unexplained_ns", "replay_error", "inferred_edges"):
            self.assertIsNone(answer[key], key)
        late = ask("path", "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz", "--step", "9999")
        self.assertIn("step 9999 is not among the steps", late["refused"])
        self.assertEqual([late["step"], late["step_ns"], late["unexplained_ns"]], [None, None, None])
        self.assertIsNone(ask("what-if", "kineto/hta-large_integer.json.gz", "input=0")["new_step_ns"])


@unittest.skipUnless(CORPUS, "OPWATCH_CORPUS is not set")
class Predictions(unittest.TestCase):
    def test_structure_of_one_step_with_the_durations_of_another(self):
        for name in ("tb-resnet50_num_workers_0.pt.trace", "tb-resnet50_num_workers_4.pt.trace", "hta-ns_resolution",
                     "param-linear_kineto", "hta-trace_diff_control"):
            with self.subTest(name):
                self.assertLess(ask("path", f"kineto/{name}.json.gz")["replay_error"], 0.03)

    def test_kernels_start_when_they_did(self):
        """The begins of kernels and copies in a step that is predicted from the step before, against the step itself."""
        errors = {}
        for name in ("tb-resnet50_num_workers_0.pt.trace", "tb-resnet50_num_workers_0-span2.pt.trace", "tb-resnet50_num_workers_4.pt.trace",
                     "tb-resnet50_num_workers_4-span2.pt.trace", "hta-ns_resolution", "param-linear_kineto", "hta-trace_diff_control"):
            errors[name] = ask("path", f"kineto/{name}.json.gz")["kernel_start_error"]
        self.assertLess(sorted(errors.values())[len(errors) // 2], 0.01, errors)
        self.assertLess(max(errors.values()), 0.03, errors)

    def test_replay_that_misses_other_steps(self):
        """Four steps with gloo on the host: what a rank waits for was not recorded. The replay of one rank misses the next steps by two thirds."""
        wrong = ask("path", "torch-legacy/torch113-ddp_gloo_rank1.json")
        self.assertIn("misses other steps", wrong["refused"])
        doubtful = ask("advise", "torch-legacy/torch113-ddp_gloo_rank0.json")
        self.assertGreater(doubtful["replay_error"], 0.03)
        self.assertIn("only within", " ".join(row["what"] for row in doubtful["rows"] if row["checked"] and row["rule"] == "data_quality"))
        self.assertNotIn("high", [row["confidence"] for row in findings(doubtful)])

    def test_no_wait_for_input(self):
        """The same job was recorded with four workers, which hide the input."""
        measured = [ask("advise", f"kineto/tb-resnet50_num_workers_4{span}.pt.trace.json.gz")["step_ns"] for span in ("", "-span2")]
        for span in ("", "-span2"):
            answer = ask("what-if", f"kineto/tb-resnet50_num_workers_0{span}.pt.trace.json.gz", "input=0")
            for step in measured:
                self.assertLess(abs(answer["new_step_ns"] / step - 1), 0.08)
                self.assertLessEqual(answer["new_low_ns"], step)
            self.assertLessEqual(answer["new_low_ns"], answer["new_step_ns"])
            self.assertLessEqual(answer["new_step_ns"], answer["new_high_ns"])
            self.assertLess(answer["new_high_ns"], answer["base_step_ns"])

    def test_wrong_changes(self):
        for change in ("input=1", "op:a", "kernel:(*0", "rank:x=median"):
            done = subprocess.run([BIN, "what-if", os.path.join(CORPUS, "kineto/hta-event_sync.json.gz"), change], capture_output=True)
            self.assertEqual(done.returncode, 2, change)
        self.assertIn("matches nothing", ask("what-if", "kineto/hta-event_sync.json.gz", "op:not_there*0")["refused"])


@unittest.skipUnless(CORPUS, "OPWATCH_CORPUS is not set")
class Advice(unittest.TestCase):
    def first(self, name):
        answer = ask("advise", name)
        self.assertEqual(sum(row["saving_after_ns"] or 0 for row in answer["rows"]), answer["step_ns"] - answer["step_if_all_ns"])
        self.assertEqual(answer["schema_version"], 1)
        return findings(answer)[0]

    def test_input(self):
        row = self.first("kineto/tb-resnet50_num_workers_0.pt.trace.json.gz")
        self.assertEqual(row["rule"], "input_wait")
        self.assertIn("num_workers", row["advice"])
        self.assertIn("resnet50_profiler_api.py:42", row["where"])
        self.assertIn("__next__", row["evidence"][0]["op"], "the whole wait, not an operator inside of it")
        self.assertGreater(row["evidence"][0]["dur_ns"], 40e6)
        self.assertTrue(all(set(item) >= {"event", "ts_ns", "dur_ns", "track"} for item in row["evidence"]))

    def test_allocation(self):
        self.assertEqual(self.first("kineto/amd-mi300-ddp_resnet18.json.gz")["rule"], "allocation")

    def test_tiny_kernels(self):
        row = self.first("kineto/amd-b200-eager.json.gz")
        self.assertEqual(row["rule"], "launch_bound")
        self.assertIn("tiny kernels", row["what"])

    def test_transfer(self):
        row = self.first("xplane/tpu_inference_2-early.xplane.pb")
        self.assertEqual(row["rule"], "transfer")
        self.assertNotEqual(row["confidence"], "high")

    def test_warm_up_is_not_advice(self):
        answer = ask("advise", "kineto/param-linear_kineto.json.gz")
        self.assertNotIn("initialization", [row["rule"] for row in findings(answer)])
        self.assertNotIn("allocation", [row["rule"] for row in findings(answer)])

    def test_warm_up_alone_is_not_called_healthy(self):
        """One step, of which 6.5 ms of 9.3 ms load modules: no finding, and no word that nothing is worth changing. The module is loaded for whichever
        kernel comes first, so fusing the first kernels does not save that."""
        answer = ask("advise", "kineto/hta-mi250-minitoy.json.gz")
        self.assertEqual(findings(answer), [])
        self.assertEqual([answer["healthy"], answer["warm_up"]], [False, True])
        self.assertLess(max(row["saving_high_ns"] or 0 for row in answer["rows"] if row["checked"]), 9.29e6 - 6.5e6)
        text = subprocess.run([BIN, "advise", os.path.join(CORPUS, "kineto/hta-mi250-minitoy.json.gz")], capture_output=True, timeout=300).stdout.decode()
        self.assertNotIn("Nothing worth changing", text)
        self.assertIn("This is mostly warm-up: record later steps", text)

    def test_first_allocation_of_the_only_step(self):
        """aten::empty takes 2.2 of 3.2 ms in the only recorded step: nothing shows that it does so in every step."""
        self.assertEqual(findings(ask("advise", "kineto/hta-event_sync.json.gz")), [])

    def test_a_thread_that_waits_for_the_backward_pass(self):
        """The main thread is in '## backward ##' for 34.5 ms while another thread runs the backward pass; it accumulates two gradients meanwhile."""
        answer = ask("advise", "kineto/hta-trace_diff_control.json.gz")
        self.assertNotIn("backward ##", " ".join(row["where"] for row in findings(answer)))
        self.assertLess(answer["replay_error"], 0.03)
        self.assertLess(ask("path", "kineto/hta-trace_diff_test.json.gz")["replay_error"], 0.1)

    def test_a_healthy_job(self):
        answer = ask("advise", "kineto/hta-ns_resolution.json.gz")
        self.assertEqual(findings(answer), [])

    def test_the_verdict_is_the_first_finding(self):
        """The overview, the verdict and the advice say the same; a job without findings says that."""
        name = os.path.join(CORPUS, "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz")
        answer = json.loads(subprocess.run([BIN, name, "--json"], capture_output=True, timeout=300, check=True).stdout)
        first = findings(answer["advice"])[0]
        verdict = answer["verdict"]["rows"][0]["verdict"]
        self.assertTrue(verdict.startswith(f"{first['what'].capitalize()[:1]}{first['what'][1:]}; without that a step takes "), verdict)
        low, high = ((answer["advice"]["step_ns"] - first[key]) / 1e6 for key in ("saving_high_ns", "saving_low_ns"))
        self.assertIn(f" takes {low:.3g} ms to {high:.3g} ms instead of {answer['advice']['step_ns'] / 1e6:.3g} ms ({first['rule']}). ", verdict)
        self.assertRegex(verdict, r"In \d+ % of a step nothing hides that; the slowest stage is ")
        self.assertEqual(verdict.count("waits for input"), 1, "said once")
        self.assertEqual(ask("verdict", "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz")["rows"][0]["verdict"], verdict)
        text = subprocess.run([BIN, name], capture_output=True, timeout=300, check=True).stdout.decode()
        self.assertLess(text.index("\nVerdict\n"), text.index("\nAdvice\n"))
        after = [row["saving_after_ns"] for row in findings(answer["advice"])[:3]]
        self.assertRegex(text.strip().splitlines()[-1] + text.strip().splitlines()[-2],
                         f"With these changes the step takes {(answer['advice']['step_ns'] - sum(after)) / 1e6:.3g}ms")
        part = ask("verdict", "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz", "--step", "10")["rows"][0]["verdict"]
        self.assertNotIn("without that", part)
        self.assertTrue(ask("verdict", "kineto/hta-ns_resolution.json.gz")["rows"][0]["verdict"].startswith("Nothing worth changing above 3 %"))

    def test_a_small_finding_follows_the_largest_share(self):
        name = "xplane/amd-jax-conv-minimal-08.xplane.pb"
        first = findings(ask("advise", name))[0]
        verdict = ask("verdict", name)["rows"][0]["verdict"]
        self.assertEqual(first["severity"], "medium")
        self.assertRegex(verdict, r"^\d+ % of a step is host code while the device waits; ")
        self.assertIn(f". {first['what'][0].upper()}{first['what'][1:]}; without that a step takes as little as ", verdict)

    def test_what_has_nothing_recorded_comes_before_findings_about_the_rest(self):
        """Of 95 ms, 17 ms have records: allocation is worth 13 %, but first of all most of the time is not known."""
        events = []
        for i in range(20):
            at = i * 95_000
            events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{i}", "ts": at, "dur": 95_000, "pid": 1, "tid": 1})
            events += [{"ph": "X", "cat": "cuda_runtime", "name": name, "ts": at + begin, "dur": 6_000, "pid": 1, "tid": 1, "args": {"correlation": 0}}
                       for name, begin in (("cudaMalloc", 0), ("cudaFree", 12_000))]
            events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "ts": at + 6_000, "dur": 10, "pid": 1, "tid": 1,
                        "args": {"correlation": i + 1}},
                       {"ph": "X", "cat": "kernel", "name": "add", "ts": at + 6_010, "dur": 5_000, "pid": 0, "tid": 7,
                        "args": {"correlation": i + 1, "device": 0, "stream": 7}}]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "trace.json")
            path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "Device"}], "traceEvents": events}))
            text = subprocess.run([BIN, "verdict", path], capture_output=True, check=True, text=True).stdout
        self.assertRegex(text, r"\n8\d % of a step has nothing recorded.*\(allocation\)")

    def test_a_recording_without_steps_is_not_called_a_step(self):
        name = os.path.join(CORPUS, "nsys-sqlite/rodinia-gaussian-report5.sqlite")
        answer = ask("advise", "nsys-sqlite/rodinia-gaussian-report5.sqlite")
        self.assertIs(answer["steps_known"], False)
        for row in findings(answer):
            self.assertNotRegex(row["what"] + row["falsified_by"], r"\b(a|the|per) step\b")
        text = subprocess.run([BIN, name], capture_output=True, timeout=300, check=True).stdout.decode()
        self.assertNotRegex(text[text.index("\nVerdict\n"):text.index("\nAdvice\n")], r"\b(a|the|per) step\b")
        self.assertIs(ask("advise", "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz")["steps_known"], True)

    def test_the_advice_does_not_contradict_the_verdict(self):
        """No saving of the whole step, no host code where nothing was recorded or where operators compute, not "all is well" where the device waits."""
        for name in ("kineto/amd-mi300-resnet_act_checkpoint.json.gz", "kineto/hta-cpu_only.json.gz", "kineto/hta-triton.json.gz",
                     "onnxruntime/ort130-silero_vad_v5.json", "tf1-timeline/anna-timeline_01.json", "nsys-sqlite/centerformer-baseline.sqlite",
                     "kineto/amd-sglang_decode-bs_32_rank0.json.gz"):
            answer = ask("advise", name)
            self.assertGreater(answer["step_if_all_ns"], answer["step_ns"] * 0.05, name)
            self.assertNotIn("host_code", [row["rule"] for row in findings(answer)], name)
        for name, words in (("kineto/amd-sglang_decode-bs_32_rank0.json.gz", "No rule found a change that saves 3 %"),
                            ("kineto/hta-triton.json.gz", "No rule found a change that saves 3 %"),
                            ("kineto/hta-ns_resolution.json.gz", "Nothing worth changing above 3 %")):
            text = subprocess.run([BIN, os.path.join(CORPUS, name)], capture_output=True, timeout=300, check=True).stdout.decode()
            self.assertIn(words, " ".join(text.split()), name)

    def test_a_step_is_not_shorter_than_its_work_on_a_stream(self):
        """Without communication 7.1 ms of kernels are left on the compute stream of a step of 19 ms."""
        answer = ask("what-if", "kineto/amd-mi300-resnet_act_checkpoint.json.gz", "kernel:nccl*0")
        self.assertGreater(answer["new_step_ns"], 6.5e6)

    def test_different_jobs_get_no_common_advice(self):
        names = [os.path.join(CORPUS, "kineto", name) for name in ("hta-ns_resolution.json.gz", "tb-resnet50_num_workers_4.pt.trace.json.gz")]
        answer = json.loads(subprocess.run([BIN, "advise", *names, "--json"], capture_output=True, timeout=300, check=True).stdout)
        self.assertEqual(findings(answer), [])
        self.assertIsNone(answer["step_ns"])
        self.assertIn("the files belong to different jobs: give the files of one job", [row["why_not"] for row in answer["rows"]])
        text = subprocess.run([BIN, *names], capture_output=True, timeout=300, check=True).stdout.decode()
        self.assertIn("2 different jobs, each judged by itself.", text)
        self.assertNotIn("\nAdvice\n", text)
        for view in ("op", "work", "lines"):
            footer = json.loads(subprocess.run([BIN, view, *names, "--json"], capture_output=True, timeout=300, check=True).stdout)["footer"]
            self.assertIn("different jobs", footer)
            footer = json.loads(subprocess.run([BIN, view, names[1], "--json"], capture_output=True, timeout=300, check=True).stdout)["footer"]
            self.assertNotIn("different jobs", footer or "")

    def test_every_rule_answers(self):
        rows = ask("advise", "kineto/hta-ns_resolution.json.gz")["rows"]
        for row in rows:
            self.assertTrue(row["what"] if row["checked"] else row["why_not"], row["rule"])


@unittest.skipUnless(CORPUS, "OPWATCH_CORPUS is not set")
class Sql(unittest.TestCase):
    """The tables path, what_if and finding have what the commands print."""
    NAME = "kineto/tb-resnet50_num_workers_0.pt.trace.json.gz"

    def sql(self, statement):
        done = subprocess.run([BIN, "sql", os.path.join(CORPUS, self.NAME), statement, "--json"], capture_output=True, timeout=300)
        if b"DuckDB" in done.stderr:
            self.skipTest("DuckDB is not installed")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["rows"]

    def test_path(self):
        answer = ask("path", self.NAME)
        self.assertEqual(self.sql("SELECT sum(dur) AS sum, count(*) AS count FROM path"), [{"sum": answer["step_ns"], "count": len(answer["rows"])}])
        joined = self.sql("SELECT count(*) AS n, count(e.id) AS known FROM path p LEFT JOIN event e ON p.event = e.id WHERE p.kind = 'kernel' AND (e.id IS NULL OR e.dur < p.dur)")
        self.assertEqual(joined, [{"n": 0, "known": 0}])

    def test_what_if(self):
        answer = ask("what-if", self.NAME, "input=0", "sync=0")
        row, = self.sql("SELECT * FROM what_if(change := 'input=0; sync=0')")
        self.assertEqual([row["base_step"], row["new_step"], row["new_low"], row["new_high"], row["refused"]],
                         [answer["base_step_ns"], answer["new_step_ns"], answer["new_low_ns"], answer["new_high_ns"], None])
        self.assertIn("matches nothing", self.sql("SELECT refused FROM what_if(change := 'op:not_there*0')")[0]["refused"])

    def test_advise(self):
        answer = ask("advise", self.NAME)
        self.assertEqual([(row["rule"], row["saving_high"]) for row in self.sql("SELECT rule, saving_high FROM finding")],
                         [(row["rule"], row["saving_high_ns"]) for row in answer["rows"]])


if __name__ == "__main__":
    unittest.main()
