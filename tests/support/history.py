"""Judges the history of a store: what clients did, what they got, and what broke meanwhile.

    history.py FILE... [--evictions] [--budget M] [--staleness SECONDS]

A history is JSON lines, in any number of files. All times are seconds of one clock.

An operation is two lines, so that one without an end shows:
    {"id": "c1-7", "op": "put", "client": "c1", "node": "3", "space": "s", "key": "k", "begin": 1.0,
     "deadline": 5.0, "digest": "ab12", "ttl": 60, "keep_until": 0, "durable": false}
    {"id": "c1-7", "end": 1.2, "result": "ok"}
op is put, get, delete (of a key), drop (of a namespace and all in it) or look (a lookup, which may
refresh as a get does). `deadline` is what the
client asked for, in seconds. Results: ok (of a get: with the digest of what it read), miss (of a get),
anything else is a failure, after which a put or delete may have happened or not. `ttl` is needed for
puts; `refreshed` on a put says that hits keep it longer. Several blocks of one call are several operations.

What happened to the cluster:
    {"event": "fault", "node": "3", "begin": 2.0, "end": 4.0}    its shards cannot be had meanwhile
    {"event": "lost", "node": "3", "at": 2.0}                    they are gone
    {"event": "repaired", "at": 9.0}                             all stripes have all shards again
    {"event": "power_cut", "at": 2.0}                            only what had been made to last remains
    {"event": "killed", "client": "c1", "at": 2.0}               its calls in flight do not end

What is never allowed: other bytes than were put; what was never put, has surely expired, or was
deleted before (`staleness` earlier, at another node); an answer `late` after its deadline.
What is owed must be read: acknowledged before, not expired, no delete since, and no more than
`budget` nodes without its shard. A miss of what is owed is allowed only with `evictions`, and never for
what was put with a keep_until that has not passed. A failure to read it is allowed while the
client's own node is at fault, and for `patience` after anything has broken or come back; also at its
deadline where deadlines are so short that they pass in healthy stores (`impatient`).
"""
import argparse
import bisect
import collections
import dataclasses
import itertools
import json
import math
import sys
import threading
import time

NEVER = math.inf
CHECKPOINT = 7.0  # What is older was made to last, with slack.


@dataclasses.dataclass
class Operation:
    id: str
    op: str
    space: str
    begin: float
    deadline: float
    client: str = ""
    node: str = ""
    key: str = ""
    digest: str = ""        # Of a put: of what it stores.
    ttl: float = NEVER
    keep_until: float = 0
    durable: bool = False
    refreshed: bool = False
    end: float = NEVER
    result: str = ""
    read: str = ""          # Of a get: the digest of what it read.

    def __str__(self):
        ended = "never ended" if self.end == NEVER else f"{self.end:.3f} {self.result}"
        return f"{self.id} at node {self.node}: {self.op} {self.space}/{self.key} [{self.begin:.3f}, {ended}]"


@dataclasses.dataclass
class Rules:
    budget: int = 2
    evictions: bool = False
    staleness: float = 1.0
    patience: float = 0.0
    impatient: bool = False
    late: float = 1.0
    skew: float = 0.0  # Between the calendars of any two machines.


@dataclasses.dataclass
class Verdict:
    violations: list
    counts: collections.Counter  # owed: gets of owed blocks that were read exact; hit, miss, ...

    def __str__(self):
        counted = ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items()))
        return "\n".join([*self.violations, f"{len(self.violations)} violations; {counted}"])


class Recorder:
    """Writes the history of one client, or of the test itself, to a file of its own."""

    def __init__(self, path, client="", node=""):
        self.client, self.node = client, node
        self._file = open(path, "a", encoding="utf-8", buffering=1)  # pylint: disable=consider-using-with
        self._lock, self._numbers = threading.Lock(), itertools.count()

    def begin(self, op, deadline, **fields):
        name = f"{self.client}-{next(self._numbers)}"
        self._write(id=name, op=op, client=self.client, node=self.node, begin=time.time(), deadline=deadline, **fields)
        return name

    def end(self, name, result, **fields):
        self._write(id=name, end=time.time(), result=result, **fields)

    def event(self, event, **fields):
        self._write(event=event, **fields)

    def _write(self, **fields):
        with self._lock:
            self._file.write(json.dumps(fields) + "\n")

    def close(self):
        self._file.close()


class BadHistory(Exception):
    """Not the lines that this module describes."""


class History:
    def __init__(self):
        self.operations = {}
        self.events = []
        self._ends = {}

    def add(self, record):
        if "event" in record:
            self.events.append(record)
        elif "op" in record:
            self.operations[record["id"]] = Operation(**record)
        else:
            self._ends[record["id"]] = record

    @classmethod
    def load(cls, paths):
        """The last line of a client that was killed may be half."""
        history = cls()
        for path in paths:
            with open(path, encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    if line.endswith("\n"):
                        try:
                            history.add(json.loads(line))
                        except (TypeError, ValueError, KeyError) as error:
                            raise BadHistory(f"{path}:{number}: no record of a history: {error!r}") from error
        return history

    def until(self, moment):
        """What was known then."""
        self.operations = {name: one for name, one in self.operations.items() if one.begin <= moment}
        self._ends = {name: end for name, end in self._ends.items() if name in self.operations and end["end"] <= moment}
        return self

    def joined(self):
        for name, record in self._ends.items():
            if name not in self.operations:
                raise BadHistory(f"operation {name} ends and never began")
            operation = self.operations[name]
            operation.end, operation.result = record["end"], record["result"]
            if operation.op == "get":
                operation.read = record.get("digest", "")
        return sorted(self.operations.values(), key=lambda operation: operation.begin)


class Faults:
    """What was broken, when."""

    def __init__(self, events):
        self.faults = [(event["node"], event["begin"], event.get("end", NEVER))
                       for event in events if event["event"] == "fault"]
        self.lost = [(event["node"], event["at"]) for event in events if event["event"] == "lost"]
        self.repaired = [event["at"] for event in events if event["event"] == "repaired"]
        self.power_cuts = [event["at"] for event in events if event["event"] == "power_cut"]
        self.killed = {event["client"]: event["at"] for event in events if event["event"] == "killed"}

    def during(self, begin, end):
        return {node for node, began, ended in self.faults if began <= end and ended >= begin}

    def without_shard(self, put, get):
        """Nodes that may not have the shard of a block when it is read: down when it was written or
        lost since, and not repaired; or down now."""
        repaired = max((at for at in self.repaired if put.end < at <= get.begin), default=-NEVER)
        missing = self.during(get.begin, get.end)
        if repaired < put.end:
            missing |= self.during(put.begin, put.end)
        missing |= {node for node, at in self.lost if max(put.begin, repaired) <= at <= get.end}
        return missing

    def unsettled(self, operation, patience):
        """Something has just broken or come back."""
        moments = itertools.chain(*((began, ended) for _, began, ended in self.faults), (at for _, at in self.lost))
        return any(operation.begin - patience <= moment <= operation.end for moment in moments)

    def forgotten_by_power_cut(self, change, get):
        return not change.durable and any(change.begin <= at <= get.end and change.end > at - CHECKPOINT
                                          for at in self.power_cuts)


class Judge:
    def __init__(self, history, rules):
        self.rules = rules
        self.faults = Faults(history.events)
        self.operations = history.joined()
        self.verdict = Verdict([], collections.Counter())
        self.puts = collections.defaultdict(list)
        self.removals = collections.defaultdict(list)  # By (space, key); drops under (space, "").
        self.last_moment = max((max(operation.begin, operation.end if operation.end < NEVER else 0)
                                for operation in self.operations), default=0)
        self.looks = collections.defaultdict(lambda: ([], []))  # By space: begins of gets, and the latest end of
        # any up to there.
        for operation in self.operations:
            where = (operation.space, operation.key)
            if operation.op == "put":
                self.puts[where].append(operation)
            elif operation.op in ("delete", "drop"):
                self.removals[where].append(operation)
            else:
                begins, ends = self.looks[operation.space]
                begins.append(operation.begin)
                ends.append(max(operation.end, ends[-1] if ends else 0))

    def judge(self):
        for operation in self.operations:
            self.judge_time(operation)
            if operation.op == "get" and operation.end < NEVER:
                self.judge_get(operation)
            elif operation.op not in ("get", "look"):
                self.verdict.counts[f"{operation.op} {'ok' if operation.result == 'ok' else 'not ok'}"] += 1
        return self.verdict

    def violation(self, operation, what):
        """With all that is known of the block, and what broke from its first put on."""
        changes = self.puts[operation.space, operation.key] + self.removals_of(operation)
        changes = sorted((one for one in changes if one.begin <= operation.end), key=lambda one: one.begin)
        first = changes[0].begin if changes else operation.begin
        faults = [f"node {node} at fault [{began:.3f}, {ended:.3f}]" for node, began, ended in self.faults.faults
                  if began <= operation.end and ended >= first]
        story = "".join(f"\n    {line}" for line in [*changes, *faults])
        self.verdict.violations.append(f"{what}: {operation}{story}")

    # --- Time ---

    def judge_time(self, operation):
        latest = operation.begin + operation.deadline + self.rules.late
        if operation.end < NEVER:
            if operation.end > latest:
                self.violation(operation, f"later than its deadline of {operation.deadline:g} s")
        elif self.last_moment > latest and operation.client not in self.faults.killed:
            self.violation(operation, f"hangs: its deadline was {operation.deadline:g} s")

    # --- Gets ---

    def judge_get(self, get):
        owed = self.owed(get)
        if get.result == "ok":
            self.verdict.counts["get exact"] += 1
            self.judge_bytes(get)
            self.verdict.counts["owed"] += bool(owed)
        elif get.result == "miss":
            self.verdict.counts["get miss"] += 1
            if owed and not (self.rules.evictions and owed.keep_until <= get.end):
                self.violation(get, f"a miss of what is owed since {owed}")
        elif self.rules.impatient and get.end >= get.begin + get.deadline:
            self.verdict.counts["get late"] += 1
        else:
            excused = get.node in self.faults.during(get.begin - self.rules.patience, get.end) or (
                self.rules.patience > 0 and self.faults.unsettled(get, self.rules.patience))
            self.verdict.counts["get failed, excused" if excused else "get failed"] += 1
            if owed and not excused:
                self.violation(get, f"a failure to read what is owed since {owed}")

    def judge_bytes(self, get):
        """What it read may have been there."""
        puts = [put for put in self.puts[get.space, get.key] if put.begin <= get.end]
        if not puts:
            return self.violation(get, "found what was never put")
        kept = [put for put in puts if not self.surely_deleted(put, get)]
        if not kept:
            return self.violation(get, "found what was deleted")
        fresh = [put for put in kept if not self.surely_expired(put, get)]
        if not fresh:
            return self.violation(get, "found what has expired")
        if all(put.digest != get.read for put in fresh):
            return self.violation(get, f"wrong bytes ({get.read}, not {fresh[-1].digest})")
        return None

    def removals_of(self, get):
        return self.removals[get.space, get.key] + self.removals[get.space, ""]

    def surely_deleted(self, put, get):
        """A removal that was done began after the put had ended, long enough before the get."""
        return any(removal.result == "ok" and removal.begin > put.end and
                   removal.end + (self.rules.staleness if removal.node != get.node else 0) < get.begin and
                   not self.faults.forgotten_by_power_cut(removal, get) for removal in self.removals_of(get))

    def surely_expired(self, put, get):
        used = put.end
        if put.refreshed:  # A hit of any block may have refreshed the stripe.
            begins, ends = self.looks[get.space]
            looked = bisect.bisect_left(begins, get.begin)
            used = max(used, ends[looked - 1]) if looked else used
        return max(used + put.ttl, put.keep_until) + self.rules.skew < get.begin

    def owed(self, get):
        """The acknowledged put whose block must be there during the whole get, if any."""
        puts = self.puts[get.space, get.key]
        for put in reversed(puts):
            if put.result == "ok" and put.end <= get.begin and self.is_owed(put, puts, get):
                return put
        return None

    def is_owed(self, put, puts, get):
        if any(removal.end >= put.begin and removal.begin <= get.end for removal in self.removals_of(get)):
            return False
        if self.faults.forgotten_by_power_cut(put, get):
            return False
        # The put may have found the block of an earlier one, and left it as it was.
        stored = [put] + [other for other in puts if other.begin < put.end and not self.surely_expired(other, put)
                          and not self.surely_deleted(other, put)]
        first = min(other.begin for other in stored)
        until = max(first + min(other.ttl for other in stored), min(other.keep_until for other in stored))
        return get.end + self.rules.skew < until and all(len(self.faults.without_shard(other, get)) <= self.rules.budget
                                       for other in stored)


def judge(history, rules=Rules()):
    return Judge(history, rules).judge()


def latencies(history, op, begin=-NEVER, end=NEVER):
    """Seconds of operations that began in this time and ended well, sorted."""
    return sorted(one.end - one.begin for one in history.joined()
                  if one.op == op and begin <= one.begin < end and one.result == "ok")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--evictions", action="store_true", help="a miss may be an eviction")
    parser.add_argument("--budget", type=int, default=2, help="nodes that may be away")
    parser.add_argument("--staleness", type=float, default=1.0, help="how long other nodes may show what was deleted")
    parser.add_argument("--patience", type=float, default=0.0, help="failures allowed for so long after a fault")
    parser.add_argument("--skew", type=float, default=0.0, help="seconds between the calendars of any two machines")
    parser.add_argument("--impatient", action="store_true", help="deadlines may be shorter than reads take")
    options = parser.parse_args()
    rules = Rules(options.budget, options.evictions, options.staleness, options.patience, options.impatient,
                  skew=options.skew)
    try:
        verdict = judge(History.load(options.files), rules)
    except (BadHistory, OSError) as error:
        print(f"history.py: {error}", file=sys.stderr)
        return 2
    print(verdict)
    return 1 if verdict.violations else 0


if __name__ == "__main__":
    sys.exit(main())
