import numpy as np
import pytest

from gpubench.errors import ArgumentError
from gpubench.sweeps.counters.join import join
from gpubench.sweeps.counters.limits import limited_by
from gpubench.sweeps.counters.metrics import METRIC_SETS, TIME, metric_names, reductions
from gpubench.sweeps.counters.parse import Kernel

COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def test_metrics_keep_their_order_and_lose_their_repeats():
    names = ["lts__t_bytes.sum", "dram__bytes.sum", "lts__t_bytes.sum"]
    assert metric_names(names) == ("lts__t_bytes.sum", "dram__bytes.sum")
    assert metric_names(name for name in names) == metric_names(names)


def test_sets_stand_for_their_metrics():
    assert metric_names("memory") == METRIC_SETS["memory"]
    both = metric_names(["memory", "launch__registers_per_thread", "compute"])
    assert both[: len(METRIC_SETS["memory"])] == METRIC_SETS["memory"]
    assert len(both) == len(set(both)) > len(METRIC_SETS["memory"]) + 1


@pytest.mark.parametrize("name", METRIC_SETS)
def test_every_set_tells_what_limits(name):
    assert {COMPUTE, MEMORY} <= set(METRIC_SETS[name])


@pytest.mark.parametrize(
    "wrong",
    [
        "regex:dram__.*",
        "group:memory__dram_table",
        "a__b.sum,c__d.sum",
        "a__b.sum ",
        "a__b.",
        "--metrics",
        "",
        3,
    ],
)
def test_what_is_no_single_metric_is_refused(wrong):
    with pytest.raises(ArgumentError, match="counters must hold names of single metrics") as error:
        metric_names(["dram__bytes.sum", wrong])
    assert str(error.value).endswith(f"got {wrong!r}")


def test_a_misspelt_set_is_refused():
    with pytest.raises(ArgumentError, match="'memroy' is neither a metric nor a set"):
        metric_names("memroy")


@pytest.mark.parametrize("nothing", [[], (), iter(())])
def test_no_metric_is_refused(nothing):
    with pytest.raises(ArgumentError, match="at least one"):
        metric_names(nothing)


def test_what_holds_no_metrics_is_refused():
    with pytest.raises(ArgumentError, match="must be a list of metrics, got 5"):
        metric_names(5)


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("dram__bytes_read.sum", 6.0),
        ("sm__cycles_active.max", 4.0),
        ("sm__cycles_active.min", 1.0),
        ("sm__cycles_active.avg", 2.0),
        ("sm__throughput.avg.pct_of_peak_sustained_elapsed", 1.5),
        ("sm__warps_active.max.pct_of_peak_sustained_active", 1.5),
        ("lts__t_sector_hit_rate.pct", 1.5),
        ("dram__bytes.sum.per_second", 1.5),
        ("smsp__average_warp_latency.ratio", 1.5),
        ("launch__registers_per_thread", 1.5),
    ],
)
def test_several_kernels_are_reduced_as_the_name_demands(metric, expected):
    values, times = np.array([1.0, 1.0, 4.0]), np.array([400.0, 100.0, 100.0])
    assert reductions([metric], None)[metric](values, times) == pytest.approx(expected)


@pytest.mark.parametrize("times", [[np.nan, 1.0], [0.0, 0.0]])
def test_without_times_all_kernels_weigh_the_same(times):
    reduce = reductions(["l1tex__t_sector_hit_rate.pct"], None)["l1tex__t_sector_hit_rate.pct"]
    assert reduce(np.array([10.0, 30.0]), np.array(times)) == 20.0


def test_the_users_function_reduces_all_metrics_or_some():
    values, times = np.array([1.0, 5.0]), np.array([1.0, 1.0])
    own = reductions(["a__b.sum", "c__d.pct"], np.median)
    assert [reduce(values, times) for reduce in own.values()] == [3.0, 3.0]
    some = reductions(["a__b.sum", "c__d.pct"], {"c__d.pct": max})
    assert [reduce(values, times) for reduce in some.values()] == [6.0, 5.0]


def test_the_users_function_cannot_change_what_others_see():
    def spoil(values):
        values[:] = 0
        return 1

    values = np.array([1.0, 5.0])
    reductions(["a__b.sum"], spoil)["a__b.sum"](values, values)
    assert values.tolist() == [1.0, 5.0]


def test_the_users_function_must_return_a_number():
    reduce = reductions(["a__b.sum"], lambda values: "much")["a__b.sum"]
    with pytest.raises(ArgumentError, match=r"reduce=<lambda> must return a number.*'much'"):
        reduce(np.ones(1), np.ones(1))


@pytest.mark.parametrize(
    ("reduce", "message"),
    [
        ("sum", "must be a function of an array, got 'sum'"),
        ({"a__b.sum": 3}, "must be a function of an array, got 3"),
        ({"c__d.sum": max}, "names 'c__d.sum', which is not among the counters"),
    ],
)
def test_what_reduces_nothing_is_refused(reduce, message):
    with pytest.raises(ArgumentError, match=message):
        reductions(["a__b.sum"], reduce)


def kernel(name, config, regions, **values):
    return Kernel(name, config, frozenset(regions), {f"x__{k}.sum": v for k, v in values.items()})


def test_a_kernel_counts_for_every_region_that_was_open():
    kernels = [
        kernel("a", 0, [], b=1),
        kernel("b", 0, [0], b=10),
        kernel("c", 0, [0, 1], b=100),
        kernel("d", 1, [1], b=1000),
    ]
    joined = join(kernels, ["outer", "inner"], reductions(["x__b.sum"], None))
    assert {place: values["x__b.sum"] for place, values in joined.values.items()} == {
        (0, None): 111,
        (0, "outer"): 110,
        (0, "inner"): 100,
        (1, None): 1000,
        (1, "inner"): 1000,
    }
    assert not joined.missing


def test_the_kernels_times_are_the_weights():
    kernels = [
        Kernel("slow", 0, frozenset(), {TIME: 900.0, "x__b.pct": 10.0}),
        Kernel("fast", 0, frozenset(), {TIME: 100.0, "x__b.pct": 90.0}),
    ]
    assert join(kernels, [], reductions(["x__b.pct"], None)).values[0, None] == {
        "x__b.pct": pytest.approx(18.0)
    }


def test_a_metric_that_one_kernel_lacks_is_left_out_where_that_kernel_counts():
    kernels = [kernel("a", 0, [0], b=1, c=1), kernel("b", 0, [1], c=1)]
    joined = join(kernels, ["one", "two"], reductions(["x__b.sum", "x__c.sum"], None))
    assert joined.values == {
        (0, None): {"x__c.sum": 2},
        (0, "one"): {"x__b.sum": 1, "x__c.sum": 1},
        (0, "two"): {"x__c.sum": 1},
    }
    assert joined.missing == {"x__b.sum": "b"}


@pytest.mark.parametrize(
    ("compute", "memory", "limit"),
    [
        (90.0, 30.0, "compute"),
        (30.0, 90.0, "memory"),
        (59.9, 10.0, "latency"),
        (10.0, 59.9, "latency"),
        (60.0, 10.0, "compute"),
        (10.0, 60.0, "memory"),
        (80.0, 80.0, "compute"),
        (0.0, 0.0, "latency"),
    ],
)
def test_what_limits_a_region(compute, memory, limit):
    assert limited_by({COMPUTE: compute, MEMORY: memory}) == limit


@pytest.mark.parametrize("counters", [{}, {COMPUTE: 90.0}, {MEMORY: 90.0}])
def test_what_limits_is_not_known_without_both_throughputs(counters):
    assert limited_by(counters) is None
