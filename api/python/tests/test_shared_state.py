"""Values that keys share, drawn: a state of its own for each key, or a refusal; never one value for all of them."""

import itertools
import tempfile
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from wallaroo import testing
from wallaroo.diagnostic.diagnostic import DiagnosticError

PROGRAM = """
import dataclasses, heapq, typing
import numpy as np
import wallaroo

class Box:
    def __init__(self): self.n = 0
    def bump(self): self.n += 1

SHARED = {box}
COUNT = 0

def change(box, m):
    {helped}

{holder}

def made():
    count = 0
    @wallaroo.state_computation("count", state={state})
    def count_step(m, s):
        {body}
        told = {read}
        return f"{{m}} {{told}}"
    return count_step

@wallaroo.line_decoder
def decode(data): return data.decode()
@wallaroo.key_extractor
def key(m): return m
@wallaroo.line_encoder
def encode(text): return str(text)

def application_setup(args):
    line = wallaroo.source("s", wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode)).key_by(key).to({step})
    return wallaroo.build_application("a", line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)))
"""
# What makes a value, how it changes, and how often it did.
BOXES = {
    "[]": (("BOX.append(m)", "heapq.heappush(BOX, m)", "BOX += [m]", "BOX.extend([m])"), "len(BOX)"),
    "['a']": (("BOX.append(m)", "BOX.insert(0, m)", "BOX[len(BOX):] = [m]"), "len(BOX) - 1"),
    "{'n': 0}": (("BOX['n'] += 1", "BOX.update(n=BOX['n'] + 1)"), "BOX['n']"),
    "Box()": (("BOX.n += 1", "BOX.bump()", "setattr(BOX, 'n', BOX.n + 1)"), "BOX.n"),
    "np.zeros(1, dtype=int)": (("BOX[0] += 1",), "int(BOX[0])"),
}
# Where states have it, and what leads there. The last one is right.
HOLDERS = {
    "class S:\n    box = {box}": ("S", ("s.box", "S.box", "type(s).box", "s.__class__.box")),
    "class S:\n    __slots__ = ('box',)\n    def __init__(self): self.box = SHARED": ("S", ("s.box",)),
    "class S:\n    def __init__(self): self.box = SHARED": ("S", ("s.box",)),
    "class S:\n    def __init__(self, box={box}): self.box = box": ("S", ("s.box",)),
    "class S(typing.NamedTuple):\n    own: list\n    box: int = {box}\nclass B:\n    def build(self): return S([])": (
        "B()", ("s.box", "s[1]"),
    ),
    "class B:\n    def build(self): return {{'box': SHARED, 'own': []}}": ("B()", ("s['box']",)),
    "class S: pass": ("S", ("SHARED",)),
    "class S:\n    def __init__(self): self.box = {box}": ("S", ("s.box",)),
}  # fmt: skip
OWN = list(HOLDERS)[-1]
NUMBER = itertools.count()


@some.composite
def programs(draw: Any) -> tuple[str, bool]:
    """Draw a program, and whether each of its states has a value of its own."""
    box = draw(some.sampled_from(list(BOXES)))
    holder = draw(some.sampled_from(list(HOLDERS)))
    state, leads = HOLDERS[holder]
    changes, read = BOXES[box]
    lead, how = draw(some.sampled_from(leads)), draw(some.sampled_from(changes))
    way = "here" if lead == "SHARED" else draw(some.sampled_from(["here", "alias", "helper"]))
    if holder.startswith("class S:\n    box") and box not in ("[]", "Box()"):
        way = "here" if way == "helper" else way  # of a table it is not known whether a function changes it
    if "+=" in how and box == "[]":
        way = "alias" if lead in ("s[1]", "SHARED") else way
    if lead == "SHARED" and way == "alias":
        how, way = "BOX.append(m)", "here"
    if lead == "SHARED" and ("heappush" in how or "bump" in how):
        how = changes[0]  # what is called there is not looked at
    body = {
        "here": how.replace("BOX", lead), "alias": f"box = {lead}; {how.replace('BOX', 'box')}",
        "helper": f"change({lead}, m)",
    }[way]  # fmt: skip
    text = PROGRAM.format(
        box=box, helped=how.replace("BOX", "box"), holder=holder.format(box=box), state=state, body=body,
        read=read.replace("BOX", lead),
        step="made()",
    )  # fmt: skip
    return text, holder == OWN


def outputs(program: str, directory: Path, calls: list[list[str]]) -> list[str] | None:
    """Return what a program gives; None: it is refused, for what its states share."""
    path = directory / f"shared{next(NUMBER)}.py"
    path.write_text(program)
    try:
        app = testing.run(str(path))
    except DiagnosticError as error:
        assert {each.code for each in error.diagnostics} == {"T234"}, str(error)
        assert ",," not in str(error) and str(error).count("one for all keys of a process") == 1
        return None
    with app:
        for call in calls:
            app.send([each.encode() for each in call])
        assert not app.dead_letters, app.dead_letters
        return [each.decode().strip() for each in app.output()]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs(), calls=some.lists(some.lists(some.sampled_from("ab"), min_size=1), min_size=2, max_size=3))
def test_each_key_counts_alone_or_the_program_is_refused(
    tmp_path: Path, program: tuple[str, bool], calls: list[list[str]]
) -> None:
    text, is_own = program
    counts: Counter[str] = Counter()
    expected = []
    for each in itertools.chain(["a", "b"], *calls):
        counts[each] += 1
        expected.append(f"{each} {counts[each]}")
    found = outputs(text, tmp_path, [["a", "b"], *calls])
    assert found == expected or (found is None and not is_own), text


def test_a_table_that_a_function_reads_is_none_that_states_change(tmp_path: Path) -> None:
    holder = "class S:\n    TABLE = {'a': 1, 'b': 2}\n    def __init__(self): self.n = 0"
    text = PROGRAM.format(
        box="0", helped="return box[m]", holder=holder, state="S", body="s.n += change(s.TABLE, m)", read="s.n",
        step="made()",
    )  # fmt: skip
    assert outputs(text, tmp_path, [["a", "b", "b"]]) == ["a 1", "b 2", "b 4"]


@pytest.mark.parametrize(
    ("holder", "body", "where"),
    [
        ("class S:\n    n = 0\n    @classmethod\n    def inc(cls): cls.n += 1", "s.inc()", "cls.n"),
        ("class S:\n    n = 0", "S.n += 1", "S.n"),
        ("class S:\n    n = 0", "type(s).n += 1", "type(s).n"),
        ("class S:\n    n = 0", "setattr(S, 'n', S.n + 1)", "S.n"),
        ("class S: pass", "nonlocal count; count += 1", "nonlocal count"),
        ("class S: pass", "global COUNT; COUNT += 1", "global COUNT"),
        ("import itertools\nclass S:\n    ids = itertools.count()", "next(s.ids)", "S.ids"),
        ("ALL = {}\nclass S:\n    def __init__(self): self.__dict__ = ALL", "s.n = m", "self.__dict__"),
        ("class S:\n    n: typing.ClassVar[int] = 0", "S.n += 1", ""),
        ("CACHE = {}\nclass S: pass", "CACHE[m] = m", ""),
        ("RATES = {'a': 1}\nclass S:\n    def __init__(self): self.rates = RATES", "s.rates.get(m)", ""),
        ("class S:\n    names = ['a']", "len(s.names); s.n = len([each for each in s.names])", ""),
    ],
)
def test_what_is_assigned_outside_of_a_state_is_refused_unless_it_is_meant(
    tmp_path: Path, holder: str, body: str, where: str
) -> None:
    program = PROGRAM.format(box="[]", helped="pass", holder=holder, state="S", body=body, read="m", step="made()")
    if where:
        with pytest.raises(DiagnosticError, match="T234") as caught:
            (tmp_path / "app.py").write_text(program)
            testing.run(str(tmp_path / "app.py"))
        assert f'step "count": its state keeps {where}, which is one for all keys' in str(caught.value)
    else:
        assert outputs(program, tmp_path, [["a", "b"]]) == ["a a", "b b"]


# What a function keeps of earlier calls and reads: its container, and what it says of it.
MEMOS = {
    "{}": ("MEMO[m] = m; m = MEMO[m]", "m = MEMO.setdefault(m, m)", "MEMO.update({m: m}); m = MEMO.get(m)"),
    "[]": ("MEMO.append(m); m = MEMO[-1]", "MEMO += [m]; m = MEMO[len(MEMO) - 1]", "MEMO.insert(0, m); m = MEMO[0]"),
    "set()": ("MEMO.add(m); m = max({m} & MEMO)", "m = m if m in MEMO else MEMO.add(m) or m"),
    "0": ("MEMO += 1; m = m if MEMO else ''", "MEMO = MEMO + 1; m = m * bool(MEMO)"),
}


# Where a function has what outlives its calls, in place of its state and of the module.
PLACES = {
    "closure": ("memo = {box}", "def run(m, s): {body}; return m", "run"),
    "default": ("pass", "def run(m, s, memo={box}): {body}; return m", "run"),
    "object": (
        "pass",
        "class Run:\n        def __init__(self): self.memo = {box}\n        def __call__(self, m, s): {body}; return m",
        "Run()",
    ),
}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=some.sampled_from([*PLACES]), box=some.sampled_from(["{}", "[]", "set()"]), data=some.data())
def test_what_a_function_keeps_by_closure_default_or_object_is_refused(
    tmp_path: Path, place: str, box: str, data: Any
) -> None:
    body = data.draw(some.sampled_from([each for each in MEMOS[box] if "+=" not in each and "lambda" not in each]))
    is_read = data.draw(some.booleans())
    before, function, name = PLACES[place]
    memo = "self.memo" if place == "object" else "memo"
    body = f"m = m if {memo} else m" if is_read else body.replace("MEMO", memo)
    text = PROGRAM.format(
        box="[]", helped="pass", state="S", body="pass", read="m", step="other()",
        holder=f"""class S: pass
def other():
    {before}
    {function}
    return wallaroo.state_computation("count", S)({name})
""".format(box=box, body=body),
    )  # fmt: skip
    assert outputs(text, tmp_path, [["a", "b"]]) == (["a", "b"] if is_read else None)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    memo=some.sampled_from([(made, use) for made, uses in MEMOS.items() for use in uses]),
    name=some.sampled_from(["SEEN", "cache", "n_calls"]),
    calls=some.lists(some.sampled_from("ab"), min_size=1, max_size=4),
)
def test_the_remedy_for_a_variable_of_the_module_works(
    tmp_path: Path, memo: tuple[str, str], name: str, calls: list[str]
) -> None:
    made, use = memo
    binds = "MEMO += " in use or "MEMO = " in use
    holders = {  # the finding, and what it says to do
        f"{name} = {made}\nclass S: pass": (f"global {name}; " if binds else "") + use.replace("MEMO", name),
        f"class Memo:\n    {name}: typing.ClassVar = {made}\nclass S: pass": use.replace("MEMO", f"Memo.{name}"),
    }
    refused, meant = (
        PROGRAM.format(box="[]", helped="pass", holder=holder, state="S", body=body, read="m", step="made()")
        for holder, body in holders.items()
    )
    first, second = (Path(tempfile.mkdtemp(dir=tmp_path)) for _ in range(2))  # no other program's bytecode
    (first / "app.py").write_text(refused)
    with pytest.raises(DiagnosticError, match="T234") as caught:
        testing.run(str(first / "app.py"))
    (finding,) = caught.value.diagnostics
    remedy = "keep it in the state; or in a class attribute annotated ClassVar, if each process may keep its own"
    assert (finding.fix, name in finding.message) == (remedy, True)
    assert outputs(meant, second, [calls]) == [f"{each} {each}" for each in calls]


KEPT = """
class S:
    def __init__(self): {fields}
    {method}
    def __setstate__(self, saved):
        self.__init__()
        self.__dict__.update(saved)
"""
FIELDS = {"n": "0", "t": "''", "ratio": "0.5", "all": "[]", "raw": "b''"}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fields=some.sets(some.sampled_from(sorted(FIELDS)), min_size=1).map(sorted),
    kept=some.sets(some.sampled_from(sorted(FIELDS))),
    has_method=some.booleans(),
)
def test_a_state_of_which_pickle_keeps_nothing_is_refused(
    tmp_path: Path, fields: list[str], kept: set[str], has_method: bool
) -> None:
    method = (
        f"def __getstate__(self): return {{each: getattr(self, each) for each in {sorted(kept.intersection(fields))}}}"
    )
    holder = KEPT.format(
        fields="; ".join(f"self.{each} = {FIELDS[each]}" for each in fields), method=method if has_method else ""
    )
    text = PROGRAM.format(box="[]", helped="pass", holder=holder, state="S", body="pass", read="m", step="made()")
    place = Path(tempfile.mkdtemp(dir=tmp_path))
    if kept.isdisjoint(fields) and has_method:
        (place / "app.py").write_text(text)
        with pytest.raises(DiagnosticError, match="T207") as caught:
            testing.run(str(place / "app.py"))
        assert 'state_computation "count": parameter state is S, of which pickle keeps no value' in str(caught.value)
    else:
        assert outputs(text, place, [["a", "b"]]) == ["a a", "b b"]


AGGREGATION = """
class T(wallaroo.Aggregation):
    {kept}
    def initial_accumulator(self): return [0]
    def update(self, input, accumulator):
        {body}
        accumulator[0] += 1
    def combine(self, accumulator1, accumulator2): return [accumulator1[0] + accumulator2[0]]
    def output(self, key, accumulator): return f"{{key}} {{accumulator[0]}}"
class S: pass
"""


@pytest.mark.parametrize(
    ("kept", "body", "where"),
    [
        ("all = []", "self.all.append(input)", "self.all"),
        ("def __init__(self): self.all = {}", "self.all[input] = 1", "self.all[input]"),
        ("n = 0", "self.n += 1", "self.n"),
        ("n = 0", "T.n += 1", "T.n"),
        ("table = {'a': 1}", "self.table.get(input)", ""),
        ("all: typing.ClassVar[list] = []", "self.all.append(input)", ""),
        ("all: typing.ClassVar[dict] = {}", "self.all[input] = 1", ""),
    ],
)
def test_an_object_that_keeps_something_beside_its_states_is_refused(
    tmp_path: Path, kept: str, body: str, where: str
) -> None:
    """Aggregations, and state computations of Wallaroo 0.5."""
    holder = AGGREGATION.format(kept=kept, body=body)
    window = PROGRAM.format(
        box="[]", helped="pass", holder=holder, state="S", body="pass", read="m",
        step="wallaroo.count_windows(2).over(T)",
    )  # fmt: skip
    classes = textwrap.dedent(window).partition("def application_setup")[0] + textwrap.dedent(
        f"""
        class Step:
            {kept}
            def name(self): return "count"
            def compute(self, input, state):
                {body.replace("T.n", "Step.n")}
                return f"{{input}} 1", True

        @wallaroo.partition
        def whole(m): return m

        def application_setup(args):
            source = wallaroo.TCPSourceConfig("127.0.0.1", 7010, decode)
            line = wallaroo.ApplicationBuilder("a").new_pipeline("p", source)
            line = line.to_state_partition(Step(), S, "states", whole)
            return line.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode)).build()
        """
    )
    for number, program in enumerate((window, classes)):
        if not where:
            found = outputs(program, tmp_path, [["a", "a"]])
            assert found == (["a 1", "a 1"] if number else ["a 2"])
            continue
        (tmp_path / f"app{number}.py").write_text(program)
        with pytest.raises(DiagnosticError, match="T234") as caught:
            testing.run(str(tmp_path / f"app{number}.py"))
        shown = where.replace("T.", "Step.") if number else where
        assert f"its object keeps {shown}, which is one for all keys" in str(caught.value)


OWN_PROGRAM = {
    "box": "[]",
    "helped": "pass",
    "holder": "class S:\n    n = 0",
    "state": "S",
    "body": "pass",
    "read": "m",
}


@pytest.mark.parametrize(
    ("body", "is_lost"),
    [
        ("return m, S(s.n + 1)", True), ("s.n += 1; return m, S(s.n)", False), ("return m, s", False),
        ("s.n += 1; return m, s.n", False),
    ],
)  # fmt: skip
def test_a_new_state_beside_a_message_is_lost_and_told(tmp_path: Path, body: str, is_lost: bool) -> None:
    holder = "@dataclasses.dataclass\nclass S:\n    n: int = 0"
    program = PROGRAM.format(**{**OWN_PROGRAM, "holder": holder, "body": body}, step="made()")
    (tmp_path / "app.py").write_text(program)
    with testing.run(str(tmp_path / "app.py")) as app:
        app.send([b"a", b"b", b"a"])
        assert [letter.code for letter in app.dead_letters] == (["C522"] * 3 if is_lost else [])
        assert len(app.output()) == (0 if is_lost else 3)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda app: app.advance("5"), "T207 advance: parameter time is '5'; expected seconds"),
        (lambda app: app.advance(float("nan")), "T207 advance: parameter time is nan"),
        (lambda app: app.advance(float("inf")), "T207 advance: parameter time is inf"),
        (lambda app: app.state("count", None), "T207 state: parameter key is None; expected a key"),
        (lambda app: app.send([b"a"], 7), 'R720 the application has no source "7"'),
        (lambda app: testing.run(None), "T207 run: parameter app is None"),
        *(
            (lambda app, args=args: testing.run(print, args), f"T207 run: parameter args is {args!r}; expected a list")
            for args in (None, 5, "--in", b"--in", ["--count", 3], {"--in"})
        ),
    ],
)
def test_slips_of_a_test_are_findings(tmp_path: Path, run: Any, said: str) -> None:
    (tmp_path / "app.py").write_text(PROGRAM.format(**OWN_PROGRAM, step="made()"))
    with testing.run(str(tmp_path / "app.py")) as app, pytest.raises(DiagnosticError) as caught:
        app.send([b"a"], 0)
        run(app)
    assert str(caught.value).startswith(said)
