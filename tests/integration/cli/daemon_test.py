"""cairnd's life: configuration, start, log, signals, metrics, end.

Usage: daemon_test.py CAIRND CAIRN SOURCE_FOLDER
"""
import os
import signal
import socket
import subprocess
import unittest

from cairnd_process import (CAIRND, SOURCE, Cairnd, Folder, lines_of_json, main, parse_exposition,
                            run, value_of)


def cairnd(*arguments):
    return subprocess.run([CAIRND, *arguments], capture_output=True, check=False, timeout=60)


class CheckConfig(Folder):
    def check(self, text, *arguments):
        return cairnd("--check-config", self.write("c.toml", text), *arguments)

    def test_the_example_is_sound(self):
        self.expect(cairnd("--check-config", SOURCE / "deploy/cairnd.toml"), 0, "sound")

    def test_sound_files(self):
        self.expect(self.check(""), 0, "memory limits add up to")
        self.expect(self.check("[store]\ntargets = 3\n"), 0, "warning: store.targets")

    def test_each_mistake_is_told_with_its_line(self):
        done = self.check('[store]\ntarget = 3\n[log]\nlevel = "loud"\n')
        self.expect(done, 2, "c.toml:2: store.target is not a setting; did you mean store.targets?")
        self.expect(done, 2, "c.toml:4: log.level: 'loud' is not one of: debug, info, warning, error")

    def test_relations(self):
        self.expect(self.check('[listen]\nunix_socket = ""\n'), 2, "nobody could come in")
        self.expect(self.check("", "--listen-tcp", "0.0.0.0:1"), 2, "tcp_beyond_loopback = true")

    def test_a_cluster_is_checked(self):
        path = self.write("c.toml", '[cluster]\nenabled = true\nnode = "a"\n')
        self.expect(cairnd("--check-config", path), 0, "sound")
        self.expect(cairnd("--check-config", path, "--cluster-listen", "127.0.0.1:0"), 2,
                    "cluster.listen: names no port")
        self.expect(cairnd("--check-config", path, "--cluster-listen", "0.0.0.0:7412"), 2,
                    "cluster.secret_file: is empty")

    def test_files_that_are_none(self):
        self.expect(cairnd("--check-config", self.folder / "none"), 2, "cannot open it")
        self.expect(cairnd("--check-config", self.folder), 2, "cannot read it")
        self.expect(self.check("[store"), 2, "c.toml:1:")

    def test_flags_stand_over_the_file(self):
        path = self.write("c.toml", '[store]\ntargets = 3\n[log]\nlevel = "debug"\n')
        done = cairnd("--config", path, "--targets", "5", "--print-config")
        self.expect(done, 0, "targets = 5")
        self.expect(done, 0, 'level = "debug"')
        again = self.write("again.toml", done.stdout)
        self.assertEqual(cairnd("--config", again, "--print-config").stdout, done.stdout)

    def test_wrong_usage(self):
        self.expect(cairnd("--nonsense"), 2, "--nonsense")
        self.expect(cairnd("--targets", "0"), 2, "--targets: '0' is out of range")
        self.expect(cairnd("--targets"), 2, "--targets")
        self.expect(cairnd("--help"), 0, "--check-config")
        self.expect(cairnd("--version"), 0, "cairnd 0.")


class Life(Folder):
    def start(self, *arguments, **options):
        return Cairnd(self.folder / "data", *arguments, **options)

    def test_it_tests_itself_serves_and_stops_cleanly(self):
        with self.start("--log-format", "json") as daemon:
            self.assertTrue(daemon.wait_for_log("self-test passed"))
            self.assertTrue(daemon.wait_for_log("ready unix:"))
            self.assertEqual(daemon.stop(), 0)
            entries = lines_of_json(daemon.log)
        self.assertEqual(entries[-1]["message"], "stopped")
        for entry in entries:
            self.assertEqual(sorted(entry), ["level", "message", "time"])
            self.assertRegex(entry["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertTrue(any("io_uring" in entry["message"] or "epoll" in entry["message"]
                            for entry in entries))
        self.assertFalse((self.folder / "data/cairn.sock").exists())

    def test_epoll_when_told(self):
        with self.start("--io-engine", "epoll") as daemon:
            samples = parse_exposition(daemon.http("/metrics")[2])
            self.assertEqual(
                [dict(labels)["poller"] for name, labels in samples if name == "cairn_build_info"],
                ["epoll"])
            self.assertEqual(daemon.stop(), 0)

    def test_a_second_signal_ends_it_at_once(self):
        with self.start() as daemon:
            daemon.process.send_signal(signal.SIGTERM)
            self.assertTrue(daemon.wait_for_log("a second signal ends it at once"))
            daemon.process.send_signal(signal.SIGTERM)
            # It may have been done already.
            self.assertIn(daemon.process.wait(timeout=60), (0, -signal.SIGTERM))

    def test_sighup_reads_the_level_again(self):
        path = self.write("c.toml", '[log]\nlevel = "info"\n')
        with self.start("--config", path) as daemon:
            path.write_text('[log]\nlevel = "nonsense"\n')
            daemon.process.send_signal(signal.SIGHUP)
            self.assertTrue(daemon.wait_for_log("'nonsense' is not one of"))
            path.write_text('[log]\nlevel = "error"\n')
            daemon.process.send_signal(signal.SIGHUP)
            # The level is error now: the stop says nothing more.
            self.assertEqual(daemon.stop(), 0)
            self.assertNotIn("stopped", daemon.log[-1])

    def test_the_service_manager_hears_that_it_is_ready(self):
        path = str(self.folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
            listener.bind(path)
            listener.settimeout(60)
            with self.start(environment={**os.environ, "NOTIFY_SOCKET": path}) as daemon:
                self.assertEqual(listener.recv(100), b"READY=1")
                self.assertEqual(daemon.stop(), 0)
                self.assertEqual(listener.recv(100), b"STOPPING=1")

    def test_two_of_them_cannot_have_one_folder(self):
        with self.start():
            with self.assertRaisesRegex(RuntimeError, "ended with 1:(.|\n)*data"):
                self.start()

    def test_an_address_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with self.assertRaisesRegex(RuntimeError, "ended with 1:"):
                self.start("--listen-tcp", f"127.0.0.1:{port}")
            with self.assertRaisesRegex(RuntimeError, "cannot serve metrics on"):
                self.start("--listen-metrics", f"127.0.0.1:{port}")

    def test_a_folder_that_cannot_be_made(self):
        self.write("file", "x")
        with self.assertRaisesRegex(RuntimeError, "ended with 1:"):
            Cairnd(self.folder / "file/data")

    def test_it_starts_after_a_kill(self):
        with self.start() as daemon:
            self.expect(daemon.cairn("namespace", "create", "n", "--fingerprint", "f"), 0)
            self.expect(daemon.cairn("put", "n", "k", "--durable", stdin=b"value"), 0)
            daemon.kill()
        with self.start() as daemon:
            self.assertEqual(self.expect(daemon.cairn("get", "n", "k"), 0).stdout, b"value")
            self.assertEqual(daemon.stop(), 0)


class Metrics(Folder):
    def test_what_prometheus_reads(self):
        with Cairnd(self.folder / "data") as daemon:
            self.assertEqual(daemon.http("/healthz"), (200, "text/plain", "ok\n"))
            self.assertEqual(daemon.http("/readyz"), (200, "text/plain", "ok\n"))
            self.assertEqual(daemon.http("/nonsense")[0], 404)
            self.assertEqual(daemon.http("/metrics", "POST")[0], 405)
            self.assertEqual(daemon.http("/metrics", "HEAD")[2], "")
            daemon.cairn("namespace", "create", "n", "--fingerprint", "f", "--quota", "1 MiB")
            daemon.cairn("put", "n", "k", stdin=b"x" * 100_000)
            daemon.cairn("get", "n", "k")
            daemon.cairn("get", "n", "absent")
            samples = self.until(daemon, lambda now: value_of(now, "cairn_store_get_hits_total") >= 2)
            status, kind, _ = daemon.http("/metrics")
            self.assertEqual((status, kind),
                             (200, "text/plain; version=0.0.4; charset=utf-8"))
            # The self-test's own block comes on top.
            self.assertGreaterEqual(value_of(samples, "cairn_funnel_blocks_total",
                                             stage="fetched_in_time"), 2)
            self.assertGreaterEqual(value_of(samples, "cairn_store_misses_total",
                                             reason="absent"), 1)
            self.assertGreaterEqual(value_of(samples, "cairn_store_bytes_put_total"), 100_000)
            self.assertEqual(value_of(samples, "cairn_target_up", target="11"), 1)
            self.assertGreaterEqual(value_of(samples, "cairn_call_seconds_count", verb="get"), 1)
            self.assertGreaterEqual(value_of(samples, "cairn_server_requests_total"), 4)
            self.assertGreaterEqual(value_of(samples, "cairn_store_write_amplification"), 1)
            names = {name for name, _ in samples}
            for name in ("cairn_endurance_written_bytes_per_day", "cairn_scrub_running",
                         "cairn_repair_running", "cairn_namespace_stored_bytes",
                         "cairn_server_sessions", "cairn_start_time_seconds"):
                self.assertIn(name, names)
            self.every_name_is_documented(names)

    def until(self, daemon, holds):
        """The first sample of which `holds`: the endpoint shows one each second."""
        for _ in range(200):
            samples = parse_exposition(daemon.http("/metrics")[2])
            if holds(samples):
                return samples
            daemon.cairn("status")
        self.fail("the metrics never showed what was done")

    def every_name_is_documented(self, names):
        guide = (SOURCE / "docs/guides/metrics.md").read_text(encoding="utf-8")
        for name in names:
            family = name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count")
            self.assertTrue(f"`{name}`" in guide or f"`{family}`" in guide,
                            f"{name} is not in docs/guides/metrics.md")


class Unreachable(Folder):
    def test_the_message_says_what_to_try(self):
        done = run("status", "--connect", f"unix:{self.folder}/none.sock")
        self.expect(done, 1, "Is cairnd running?")
        self.expect(run("status", "--data-dir", self.folder), 1, f"unix:{self.folder}/cairn.sock")
        environment = {**os.environ, "CAIRN_CONNECT": f"unix:{self.folder}/else.sock"}
        self.expect(run("status", env=environment), 1, "else.sock")


if __name__ == "__main__":
    main()
