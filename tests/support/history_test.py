"""The judge of histories: what any order of the operations allows it accepts, all else it rejects."""
import dataclasses
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest

import history
from history import History, Operation, Rules

DEADLINE = 5.0


numbers = itertools.count()


def operation(op, begin, end, result="ok", **fields):
    fields = {"node": "1", "client": "c", "deadline": DEADLINE, "space": "s", "key": "k", **fields}
    return Operation(id=f"c-{next(numbers)}", op=op, begin=begin, end=end, result=result, **fields)


def put(begin, end, result="ok", digest="good", **fields):
    return operation("put", begin, end, result, digest=digest, **fields)


def get(begin, end, result="ok", read="good", **fields):
    return operation("get", begin, end, result, read=read if result == "ok" else "", **fields)


def delete(begin, end, result="ok", **fields):
    return operation("delete", begin, end, result, **fields)


def drop(begin, end, result="ok", **fields):
    return operation("drop", begin, end, result, key="", **fields)


def fault(node, begin, end):
    return {"event": "fault", "node": node, "begin": begin, "end": end}


def told(*records):
    told_history = History()
    for record in records:
        if isinstance(record, Operation):
            told_history.operations[record.id] = record
        else:
            told_history.events.append(record)
    return told_history


def judge(*records, **rules):
    return history.judge(told(*records), Rules(**rules))


NEVER = history.NEVER
FULL = {"evictions": True}


class Bytes(unittest.TestCase):
    def accepted(self, *records, **rules):
        self.assertEqual(judge(*records, **rules).violations, [])

    def rejected(self, why, *records, **rules):
        violations = judge(*records, **rules).violations
        self.assertEqual(len(violations), 1, violations)
        self.assertIn(why, violations[0])


class Content(Bytes):
    def test_what_was_put_is_read(self):
        self.accepted(put(0, 1), get(2, 3))
        self.rejected("wrong bytes", put(0, 1), get(2, 3, read="bad"))
        self.rejected("never put", get(2, 3))
        self.rejected("never put", put(4, 5), get(2, 3))
        self.rejected("never put", put(0, 1, key="other"), get(2, 3))
        self.rejected("never put", put(0, 1, space="other"), get(2, 3))

    def test_what_is_being_put_may_be_read_or_not(self):
        for result in ("ok", "miss"):
            self.accepted(put(0, 3), get(1, 2, result))
            self.accepted(put(0, 1, "refused"), get(2, 3, result))
            self.accepted(put(0, NEVER, ""), get(2, 3, result))

    def test_of_two_contents_either_may_be_there_until_one_is_deleted(self):
        self.accepted(put(0, 1, digest="a"), put(2, 3, digest="b"), get(4, 5, read="a"))
        self.accepted(put(0, 1, digest="a"), put(2, 3, digest="b"), get(4, 5, read="b"))
        self.rejected("wrong bytes", put(0, 1, digest="a"), delete(2, 3), put(4, 5, digest="b"),
                      get(9, 10, read="a"))

    def test_blocks_of_deleted_namespaces_are_gone_in_the_new_one(self):
        self.rejected("deleted", put(0, 1), drop(2, 3), get(9, 10))
        self.rejected("wrong bytes", put(0, 1, digest="a"), drop(2, 3), put(4, 5, digest="b"), get(9, 10, read="a"))
        self.accepted(put(0, 1), drop(2, 3), put(4, 5), get(9, 10))


class Owed(Bytes):
    def test_a_miss_of_what_is_owed(self):
        self.rejected("a miss of what is owed", put(0, 1), get(2, 3, "miss"))
        self.accepted(put(0, 1), get(2, 3, "miss"), **FULL)
        self.rejected("a failure to read", put(0, 1), get(2, 3, "unavailable"))
        self.rejected("a failure to read", put(0, 1), get(2, 3, "unavailable"), **FULL)

    def test_what_is_guaranteed_is_not_evicted(self):
        self.rejected("a miss of what is owed", put(0, 1, ttl=100, keep_until=50), get(2, 3, "miss"), **FULL)
        self.accepted(put(0, 1, ttl=100, keep_until=50), get(51, 52, "miss"), **FULL)

    def test_what_may_have_been_deleted_is_not_owed(self):
        for end, result in ((3, "ok"), (3, "unavailable"), (NEVER, ""), (7, "ok")):
            self.accepted(put(0, 1), delete(2, end, result), get(4, 5, "miss"))
        self.rejected("a miss", put(0, 1), delete(6, 7), get(4, 5, "miss"))
        self.rejected("a miss", delete(-2, -1), put(0, 1), get(4, 5, "miss"))

    def test_what_may_have_expired_is_not_owed(self):
        self.accepted(put(0, 1, ttl=4), get(3, 5, "miss"))
        self.rejected("a miss", put(0, 1, ttl=4), get(2, 3, "miss"))
        self.rejected("a miss", put(0, 1, ttl=4, keep_until=20), get(9, 10, "miss"))

    def test_a_put_that_found_the_block_promises_no_more_than_the_first(self):
        self.accepted(put(0, 1, ttl=10), put(8, 9, ttl=10), get(11, 12, "miss"))
        self.rejected("a miss", put(0, 1, ttl=4), put(8, 9, ttl=10), get(11, 12, "miss"))
        self.rejected("a miss", put(0, 1, ttl=10), delete(2, 3), put(8, 9, ttl=10), get(11, 12, "miss"))

    def test_verdicts_count_what_was_owed_and_read(self):
        counts = judge(put(0, 1), get(2, 3), get(0.5, 3)).counts
        self.assertEqual((counts["owed"], counts["get exact"], counts["put ok"]), (1, 2, 1))


class Expired(Bytes):
    def test_it_is_not_served(self):
        self.rejected("expired", put(0, 1, ttl=4), get(5.1, 6))
        self.accepted(put(0, 1, ttl=4), get(4.9, 6))
        self.accepted(put(0, 1, ttl=4, keep_until=8), get(7, 8))
        self.rejected("expired", put(0, 1, ttl=4, keep_until=8), get(8.1, 9))
        self.accepted(put(0, NEVER, "", ttl=4), {"event": "killed", "client": "c", "at": 1}, get(9, 10))

    def test_hits_refresh_it(self):
        refreshed = put(0, 1, ttl=4, refreshed=True)
        self.accepted(refreshed, get(3, 4), get(7, 8))
        self.rejected("expired", refreshed, get(3, 4), get(8.1, 9))
        self.accepted(refreshed, put(0, 1, key="neighbour", ttl=4, refreshed=True), get(3, 4, key="neighbour"), get(7, 8))
        self.rejected("expired", put(0, 1, ttl=4), get(3, 4), get(7, 8))


class Deleted(Bytes):
    def test_it_is_not_served(self):
        self.rejected("deleted", put(0, 1), delete(2, 3), get(3.1, 4))
        self.accepted(put(0, 1), delete(2, 3), get(2.9, 4))
        self.accepted(put(0, 1), delete(2, 3, "unavailable"), get(3.1, 4))
        self.accepted(put(0, 2.5), delete(2, 3), get(5, 6))

    def test_other_nodes_may_show_it_for_a_second(self):
        self.accepted(put(0, 1), delete(2, 3, node="2"), get(3.9, 5))
        self.rejected("deleted", put(0, 1), delete(2, 3, node="2"), get(4.1, 5))
        self.accepted(put(0, 1), delete(2, 3, node="2"), get(5.9, 7), staleness=3)


class Time(Bytes):
    def test_nothing_is_later_than_its_deadline_and_a_second(self):
        for make in (put, get, delete, drop):
            before = [] if make is put else [put(-1, -0.5)]
            after = [put(20, 21, key="later")]
            result = "failed"
            rules = {"patience": 100} if make is get else {}
            self.accepted(*before, make(0, 6, "ok"), *after)
            self.accepted(*before, make(0, 6.1, "ok"), *after, late=2)
            self.rejected("later than its deadline", *before, make(0, 6.1, "ok"), *after)
            if make is not get:
                self.rejected("later than its deadline", *before, make(0, 6.1, result), *after, **rules)

    def test_what_never_ends_hangs_unless_its_client_was_killed(self):
        self.rejected("hangs", get(0, NEVER, ""), put(7, 8))
        self.accepted(get(0, NEVER, ""), put(3, 4, key="later"))
        self.accepted(get(0, NEVER, ""), put(7, 8), {"event": "killed", "client": "c", "at": 1})
        self.rejected("hangs", get(0, NEVER, ""), put(7, 8), {"event": "killed", "client": "other", "at": 1})


class Faulty(Bytes):
    def test_within_the_budget_blocks_are_owed(self):
        two = [fault("7", 2, 9), fault("8", 2, 9)]
        self.rejected("a miss", put(0, 1), *two, get(3, 4, "miss"))
        self.rejected("a failure", put(0, 1), *two, get(3, 4, "unavailable"))
        self.accepted(put(0, 1), *two, fault("9", 4, 5), get(3, 4, "miss"))
        self.rejected("a miss", put(0, 1), *two, fault("8", 4, 5), get(3, 4, "miss"))
        self.rejected("a miss", put(0, 1), *two, fault("9", 4, 5), get(10, 11, "miss"))
        self.accepted(put(0, 1), *two, get(3, 4, "miss"), budget=1)

    def test_bytes_are_right_beyond_it_too(self):
        self.rejected("wrong bytes", put(0, 1), *(fault(node, 2, 9) for node in "789"), get(3, 4, read="bad"))

    def test_shards_that_were_not_written_or_are_lost_count_until_repaired(self):
        while_down = [fault("7", 0, 1), put(0, 1), fault("8", 3, 4), {"event": "lost", "node": "9", "at": 2}]
        self.accepted(*while_down, get(3, 4, "miss"))
        self.rejected("a miss", *while_down, {"event": "repaired", "at": 2.5}, get(3, 4, "miss"), budget=1)
        self.accepted(*while_down, {"event": "repaired", "at": 0.5}, get(3, 4, "miss"))
        self.rejected("a miss", *while_down[:3], get(3, 4, "miss"))

    def test_failures_are_excused_where_the_node_is_at_fault_and_for_a_while(self):
        failed = get(3, 4, "unavailable")
        self.accepted(put(0, 1), fault("1", 2, 9), failed)
        self.rejected("a failure", put(0, 1), fault("2", 2, 9), failed)
        self.accepted(put(0, 1), fault("2", 2, 9), failed, patience=1.5)
        self.rejected("a failure", put(0, 1), fault("2", 2, 9), failed, patience=0.5)
        self.rejected("a miss", put(0, 1), fault("1", 2, 9), get(3, 4, "miss"), patience=5)

    def test_a_power_cut_takes_what_was_not_made_to_last(self):
        cut = {"event": "power_cut", "at": 2}
        self.accepted(put(0, 1), cut, get(3, 4, "miss"))
        self.rejected("a miss", put(0, 1, durable=True), cut, get(3, 4, "miss"))
        self.rejected("a miss", put(-9, -8), cut, get(3, 4, "miss"))
        self.accepted(put(-9, -8), delete(0, 1), cut, get(3, 4))
        self.rejected("deleted", put(-19, -18), delete(-9, -8), cut, get(3, 4))

    def test_the_impatient_may_give_up_at_their_deadline(self):
        for end, accept in ((5, self.rejected), (5.1, self.accepted)):
            words = ("a failure",) if accept == self.rejected else ()
            accept(*words, put(-1, 0), get(0.1, end, "deadline"), impatient=True)
        self.rejected("a failure", put(-1, 0), get(0.1, 5.1, "deadline"))


class Model:
    """A store that is right, with a random moment in each operation at which it happens."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.records = []

    def run(self, count):
        plans, now = [], 0.0
        for number in range(count):
            now += self.rng.random()
            begin, length = now, self.rng.random() * 3
            op = self.rng.choices(("put", "get", "delete", "drop"), (40, 100, 5, 1))[0]
            fields = {"key": "" if op == "drop" else str(self.rng.randrange(6)), "node": str(self.rng.randrange(3))}
            if op == "put":
                fields.update(digest=f"d{number}", ttl=self.rng.choice((5, 20, 1000)))
            made = operation(op, begin, begin + length, **fields)
            plans.append((begin + length * self.rng.random(), number, made))
        there = {}
        for moment, _number, made in sorted(plans):
            self.happen(there, moment, made)
            self.records.append(made)
        return told(*self.records)

    def happen(self, there, moment, made):
        found = there.get(made.key)
        fresh = found and moment < found[1]
        if made.op == "put" and not fresh:
            there[made.key] = made.digest, moment + made.ttl
        elif made.op == "get":
            made.result, made.read = ("ok", found[0]) if fresh else ("miss", "")
        elif made.op == "delete":
            there.pop(made.key, None)
        elif made.op == "drop":
            there.clear()


def exact_gets(judged):
    return [one for one in judged.joined() if one.op == "get" and one.result == "ok"]


def other_bytes(judged, rng):
    rng.choice(exact_gets(judged)).read = "never put by anyone"


def forget_a_put(judged, rng):
    found = rng.choice(exact_gets(judged))
    for one in judged.joined():
        if one.op == "put" and one.digest == found.read:
            del judged.operations[one.id]


def swap_keys(judged, rng):
    found = rng.choice(exact_gets(judged))
    found.key = str((int(found.key) + 1) % 6)


def miss_what_is_owed(judged, rng):
    judge_of = history.Judge(judged, Rules())
    owed = [one for one in exact_gets(judged) if judge_of.owed(one)]
    found = rng.choice(owed)
    found.result, found.read = "miss", ""


def fail_what_is_owed(judged, rng):
    miss_what_is_owed(judged, rng)
    for one in judged.joined():
        if one.result == "miss" and history.Judge(judged, Rules()).owed(one):
            one.result = "unavailable"


def read_after_everything_is_deleted(judged, rng):
    found = dataclasses.replace(rng.choice(exact_gets(judged)), id="late", begin=5000, end=5001)
    for removal in (drop(4000, 4001), found):
        judged.operations[removal.id] = removal


def read_after_everything_has_expired(judged, rng):
    found = dataclasses.replace(rng.choice(exact_gets(judged)), id="late", begin=9000, end=9001)
    judged.operations[found.id] = found


def answer_late(judged, rng):
    rng.choice(list(judged.operations.values())).end += 100


def answer_never(judged, rng):
    one = rng.choice(judged.joined()[:20])
    one.end, one.result, one.read = NEVER, "", ""


MUTANTS = (other_bytes, forget_a_put, swap_keys, miss_what_is_owed, fail_what_is_owed,
           read_after_everything_is_deleted, read_after_everything_has_expired, answer_late, answer_never)


class Random(unittest.TestCase):
    def test_what_a_right_store_does_is_accepted(self):
        owed = 0
        for seed in range(100):
            verdict = history.judge(Model(seed).run(200))
            self.assertEqual(verdict.violations, [], seed)
            owed += verdict.counts["owed"]
        self.assertGreater(owed, 1000)

    def test_what_a_wrong_store_does_is_rejected(self):
        for mutate in MUTANTS:
            for seed in range(15):
                judged = Model(seed).run(200)
                mutate(judged, random.Random(seed))
                self.assertNotEqual(history.judge(judged).violations, [], f"{mutate.__name__}, seed {seed}")


class Files(unittest.TestCase):
    def setUp(self):
        self.path = tempfile.mkstemp(prefix="cairn-history-")[1]
        self.addCleanup(os.unlink, self.path)

    def verdict(self, *flags):
        done = subprocess.run([sys.executable, history.__file__, self.path, *flags], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_recorder_writes_what_the_program_judges(self):
        recorder = history.Recorder(self.path, "c1", "3")
        recorder.end(recorder.begin("put", 5, space="s", key="k", digest="d", ttl=60), "ok")
        recorder.end(recorder.begin("get", 5, space="s", key="k"), "ok", digest="d")
        self.assertEqual(self.verdict()[0], 0)
        recorder.end(recorder.begin("get", 5, space="s", key="k"), "miss")
        recorder.event("fault", node="3", begin=0, end=1)
        recorder.close()
        with open(self.path, "a", encoding="utf-8") as file:
            file.write('{"id": "half a li')
        code, said = self.verdict()
        self.assertEqual(code, 1)
        self.assertIn("a miss of what is owed since c1-0 at node 3: put s/k", said)
        self.assertIn("1 violations; get exact 1, get miss 1, owed 1, put ok 1", said)
        self.assertEqual(self.verdict("--evictions")[0], 0)
        loaded = History.load([self.path])
        self.assertEqual([len(history.latencies(loaded, op)) for op in ("put", "get", "delete")], [1, 1, 0])
        self.assertEqual(history.latencies(loaded, "get", begin=NEVER), [])

    def test_a_history_is_cut_off_at_a_moment(self):
        with open(self.path, "w", encoding="utf-8") as file:
            for line in ('{"id": "a", "op": "put", "space": "s", "begin": 1, "deadline": 5, "digest": "d"}',
                         '{"id": "a", "end": 2, "result": "ok"}',
                         '{"id": "b", "op": "get", "space": "s", "begin": 3, "deadline": 5}',
                         '{"id": "b", "end": 4, "result": "miss"}'):
                file.write(line + "\n")
        for moment, known in ((9, [("put", "ok"), ("get", "miss")]), (3.5, [("put", "ok"), ("get", "")]),
                              (1.5, [("put", "")]), (0, [])):
            told = History.load([self.path]).until(moment)
            self.assertEqual([(one.op, one.result) for one in told.joined()], known)

    def test_what_is_no_history_is_named_with_its_line(self):
        for text in ("{}\n", "what\n", json.dumps({"id": "x", "op": "put", "size": 1}) + "\n"):
            with open(self.path, "w", encoding="utf-8") as file:
                file.write('{"event": "repaired", "at": 1}\n' + text)
            code, said = self.verdict()
            self.assertEqual((code, f"{self.path}:2: no record" in said), (2, True), said)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write('{"id": "c-1", "end": 1, "result": "ok"}\n')
        self.assertIn("c-1 ends and never began", self.verdict()[1])


if __name__ == "__main__":
    unittest.main()
