import random

import pytest

from gpubench.render.names import short_names


def elementwise(functor):
    return (
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{functor}<float>, "
        f"std::array<char*, 3ul> >(int, at::native::{functor}<float>, std::array<char*, 3ul>)"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sqrt", "sqrt"),
        ("void add<float>(float*, int)", "void add<float>(float*, int)"),
        ("two\nlines\x1b[1m", "two\\nlines\\x1b[1m"),
        ("", "(no name)"),
        (
            "void scale<float, 128>(float*, float const*, unsigned long long)",
            "scale<float, 128>",
        ),
        (
            "void cub::detail::DeviceScanInitKernel<cub::ScanTileState<int, true> >(int)",
            "DeviceScanInitKernel<ScanTileState<int, true> >",
        ),
        (
            "void a::(anonymous namespace)::softmax<a::(anonymous namespace)::Forward, 4>(int*)",
            "softmax<Forward, 4>",
        ),
        (elementwise("CUDAFunctor_add"), "vectorized_elementwise_kernel<4, CUDAFu…, 3ul> >"),
        (
            "_ZN7cutlass6KernelINS_4gemm6kernel4GemmINS1_11threadblock12MmaPipelined",
            "_ZN7cutlass6KernelINS_4gemm6kernel4Gemm…ipelined",
        ),
        ("(" * 60, f"{'(' * 39}…{'(' * 8}"),
    ],
)
def test_long_name_loses_parameters_then_namespaces_then_its_middle(name, shown):
    assert short_names([name]) == {name: shown}


def test_names_that_begin_alike_show_where_they_differ():
    names = [elementwise(functor) for functor in ("CUDAFunctor_add", "CUDAFunctor_mul", "Sin")]

    assert list(short_names(names).values()) == [
        "vectorized_element…CUDAFunctor_add<float>, arra…",
        "vectorized_element…CUDAFunctor_mul<float>, arra…",
        "vectorized_element…Sin<float>, array<char*, 3ul…",
    ]


def test_names_that_differ_twice_show_both_parts():
    names = [
        elementwise(f"{outer}(at::Tensor)::{{lambda()#{n}}}::operator()() const::run")
        for outer in ("launch_clamp", "launch_round")
        for n in (7, 8)
    ]

    assert list(short_names(names).values()) == [
        "vectorized_element…launch_clamp(…7}::operator()…",
        "vectorized_element…launch_clamp(…8}::operator()…",
        "vectorized_element…launch_round(…7}::operator()…",
        "vectorized_element…launch_round(…8}::operator()…",
    ]


def test_names_that_differ_too_often_are_numbered():
    names = ["k" * 40 + f" {n // 2} {'word' * 5} {n % 2}" for n in range(4)]

    assert list(short_names(names, 36).values()) == [
        "kkkkkkkkkkkkkkkkkk…0 wordwordwor… #1",
        "kkkkkkkkkkkkkkkkkk…0 wordwordwor… #2",
        "kkkkkkkkkkkkkkkkkk…1 wordwordwor… #1",
        "kkkkkkkkkkkkkkkkkk…1 wordwordwor… #2",
    ]


def test_what_goes_first_stays_where_names_differ_in_it():
    names = [
        "overload_with_quite_a_long_name_indeed(int const*, long long)",
        "overload_with_quite_a_long_name_indeed(long const*, long long)",
        "void one_library::detail::reduce_with_quite_a_long_name<float>(int)",
        "void two_library::detail::reduce_with_quite_a_long_name<float>(int)",
    ]

    assert list(short_names(names).values()) == [
        "overload_with_quit…int const*, long long)",
        "overload_with_quit…long const*, long long)",
        "void one_library::detail::reduce_with_q…at>(int)",
        "void two_library::detail::reduce_with_q…at>(int)",
    ]


def test_width_is_kept_and_names_stay_distinct_whatever_they_are():
    random_ = random.Random(1)
    parts = ["a", "::", "<", ">", "(", ")", ", ", "void ", "kernel_of_something", " const", "\n"]
    for _ in range(300):
        stem = "".join(random_.choices(parts, k=random_.randrange(12)))
        names = {
            stem + "".join(random_.choices(parts, k=random_.randrange(1, 12)))
            for _ in range(random_.randrange(1, 40))
        }
        width = random_.choice([36, 48, 60])
        shown = short_names(names, width)

        assert list(shown) == list(names)
        assert len(set(shown.values())) == len(names), names
        assert max(map(len, shown.values())) <= width + len("… #39")
        assert all(text.isprintable() for text in shown.values())


def test_repeats_count_once():
    assert short_names(["sqrt", "sqrt"]) == {"sqrt": "sqrt"}
