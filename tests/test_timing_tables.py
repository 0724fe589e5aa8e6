from dataclasses import dataclass

from gpubench.render.timing import timing_tables


@dataclass(frozen=True)
class Row:
    device: str
    name: str
    elapsed: float


ROWS = [
    Row("cuda:0", "memset", 0.021504),
    Row("cuda:0", "kernel sqrt", 2.1),
    Row("cuda:1", "kernel sqrt", 12.1),
    Row("cuda:1", "memcpy DtoH", 0.1),
]


def test_three_tables_of_rows_activities_and_devices():
    assert timing_tables(iter(ROWS)) == (
        "Timeline:\n"
        "        time | device | activity\n"
        "-------------+--------+------------\n"
        " 0.021504 ms | cuda:0 | memset\n"
        " 2.100000 ms | cuda:0 | kernel sqrt\n"
        "12.100000 ms | cuda:1 | kernel sqrt\n"
        " 0.100000 ms | cuda:1 | memcpy DtoH\n"
        "\n"
        "Activity summary:\n"
        "  total time | share | count | activity\n"
        "-------------+-------+-------+------------\n"
        "14.200000 ms | 99.2% |     2 | kernel sqrt\n"
        " 0.100000 ms |  0.7% |     1 | memcpy DtoH\n"
        " 0.021504 ms |  0.2% |     1 | memset\n"
        "\n"
        "Device summary:\n"
        "  total time | share | count | device\n"
        "-------------+-------+-------+-------\n"
        "12.200000 ms | 85.2% |     2 | cuda:1\n"
        " 2.121504 ms | 14.8% |     2 | cuda:0"
    )


def test_indent_begins_each_line_that_is_not_blank():
    plain, indented = timing_tables(ROWS).splitlines(), timing_tables(ROWS, "    ").splitlines()

    assert indented == [f"    {line}" if line else "" for line in plain]


def test_no_rows_are_a_sentence():
    assert timing_tables([], "  ") == "  No activities were recorded."


def test_rows_that_took_no_time_have_a_share():
    assert timing_tables([Row("cuda:0", "memset", 0.0)]).splitlines()[-1] == (
        "0.000000 ms |  0.0% |     1 | cuda:0"
    )


def test_long_and_hostile_names_keep_to_their_lines():
    text = timing_tables([Row("cuda:0", "a\n" + "b" * 400, 1.0)])

    assert len(text.splitlines()) == 14
    assert max(map(len, text.splitlines())) < 100
