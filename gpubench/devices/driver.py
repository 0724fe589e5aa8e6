"""What CuPy lacks of CUDA's driver API, through cuda-bindings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gpubench.devices.primary_contexts import devices_with_context
from gpubench.errors import UnsupportedError


def driver_api() -> Any:
    """Return the driver API.

    Raises
    ------
    UnsupportedError
        If cuda-bindings is missing or broken; the message says which.
    """
    try:
        from cuda.bindings import driver
    except Exception as error:  # a broken installation fails in more ways than ImportError
        raise UnsupportedError(
            f"cuda-bindings can't be imported ({error}); pip install cuda-bindings"
        ) from error
    return driver


@contextmanager
def used_contexts() -> Iterator[list[int]]:
    """Lend the primary contexts that this process has, by their handles.

    Raises
    ------
    UnsupportedError
        If cuda-bindings or the driver can't tell.
    """
    driver = driver_api()
    used = sorted(devices_with_context() or ())
    contexts = [int(_ask(driver, "cuDevicePrimaryCtxRetain", device)[0]) for device in used]
    try:
        yield contexts
    finally:
        for device in used:
            _ask(driver, "cuDevicePrimaryCtxRelease", device)


def graph_kernel_names(graph: int) -> tuple[str, ...]:
    """Return the names of the kernels in a graph and in the graphs inside it.

    Parameters
    ----------
    graph : int
        The ``cudaGraph_t``.

    Returns
    -------
    tuple of str
        As the compiler mangled them, in the order in which they were added to the graph.

    Raises
    ------
    UnsupportedError
        If cuda-bindings or the driver can't tell.
    """
    driver = driver_api()
    return tuple(_kernel_names(driver, driver.CUgraph(graph)))


def graph_size(graph: int) -> int:
    """Return how many nodes a graph has, by its ``cudaGraph_t``.

    Raises
    ------
    UnsupportedError
        If cuda-bindings or the driver can't tell.
    """
    driver = driver_api()
    return int(_ask(driver, "cuGraphGetNodes", driver.CUgraph(graph), 0)[1])


def _kernel_names(driver: Any, graph: Any) -> Iterator[str]:
    n_nodes = _ask(driver, "cuGraphGetNodes", graph, 0)[1]
    for node in _ask(driver, "cuGraphGetNodes", graph, n_nodes)[0]:
        kind = _ask(driver, "cuGraphNodeGetType", node)[0]
        if kind == driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL:
            yield _name(driver, _ask(driver, "cuGraphKernelNodeGetParams", node)[0])
        elif kind == driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_GRAPH:
            yield from _kernel_names(driver, _ask(driver, "cuGraphChildGraphNodeGetGraph", node)[0])


def _name(driver: Any, parameters: Any) -> str:
    # a node holds a function, or a kernel that is loaded when the graph first runs
    if int(parameters.func):
        (name,) = _ask(driver, "cuFuncGetName", parameters.func)
    else:
        (name,) = _ask(driver, "cuKernelGetName", parameters.kern)
    return str(name.decode(errors="replace"))


def _ask(driver: Any, function: str, *args: Any) -> Any:
    """Return what a function of the driver API answers beside its status."""
    try:
        status, *answer = getattr(driver, function)(*args)
    except (AttributeError, RuntimeError) as error:  # the bindings or the driver are too old
        raise UnsupportedError(f"{function} can't be called: {error}") from error
    if int(status) != 0:
        raise UnsupportedError(f"the CUDA driver refused {function}: {status}")
    return answer
