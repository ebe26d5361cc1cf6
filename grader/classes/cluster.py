"""A class on the machines of a cluster, by dask.distributed and dask-jobqueue.

The workers must see the folder of results under the same name, as they do on a cluster's shared
file system, and have the course installed. How jobs are asked for (queue, memory, wall time) is
said in dask's own configuration, `jobqueue.NAME`.
"""

from __future__ import annotations

import functools
import importlib
import queue
from functools import partial
from pathlib import Path
from typing import Any

from grader.classes.forks import LostError, Warm
from grader.classes.grading import grade
from grader.classes.task import Event, Manner, Task

MEMORY = "4GiB"
"""Asked for a worker where dask's configuration says nothing."""


class ClusterError(Exception):
    """There is no such cluster here; one sentence says what was expected."""


def _needed(module: str) -> Any:  # noqa: ANN401 - a module that may be absent
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ClusterError(
            f"expected the package {error.name} for --cluster: pip install -e '.[cluster]'"
        ) from None


@functools.cache
def _warm(manner: Manner) -> Warm:
    """The worker's own; it goes with the worker."""
    return Warm(manner)


def work(line: bytes) -> list[Event]:
    """On a worker: all that is told of one submission."""
    task, told = Task.of_line(line), list[Event]()
    if not Path(task.folder).is_dir():
        why = "expected --out in a folder that all machines of the cluster share"
        return [{"event": "lost", "message": f"this machine has no folder {task.folder}; {why}"}]
    try:
        grade(task, _warm(task.manner), told.append)
    except LostError as error:
        told.append({"event": "lost", "message": str(error)})
    return told


def named(name: str, workers: int) -> Any:  # noqa: ANN401 - a cluster of dask
    """A cluster of this kind, with so many workers asked for."""
    distributed = _needed("distributed")
    # A submission that ends its worker is not to end a second one before we hear of it, and those
    # that wait do so here: none is lost with a worker but the one that runs there.
    kept = {"allowed-failures": 0, "worker-saturation": 1.0}
    _needed("dask").config.set({f"distributed.scheduler.{key}": kept[key] for key in kept})
    if name == "local":
        return distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None
        )
    cluster = _queued(name)
    cluster.scale(jobs=workers)
    return cluster


def _queued(name: str) -> Any:  # noqa: ANN401
    jobqueue, config = _needed("dask_jobqueue"), _needed("dask").config
    kinds = {k.removesuffix("Cluster").lower(): k for k in vars(jobqueue) if k.endswith("Cluster")}
    if name not in kinds:
        raise ClusterError(f"expected --cluster {', '.join(sorted(kinds))}, got {name}")
    usual = {"cores": 1, "processes": 1, "memory": MEMORY}
    said = {key: config.get(f"jobqueue.{name}.{key}", None) or usual[key] for key in usual}
    try:
        return getattr(jobqueue, kinds[name])(**said)
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        raise ClusterError(f"the cluster {name} cannot be had: {error}") from None


class Cluster:
    """A backend (`grading.Backend`) of a cluster's workers, one submission at a time each."""

    def __init__(self, name: str, workers: int) -> None:
        self.cluster = named(name, workers)
        self.client = _needed("distributed").Client(self.cluster)
        self._heard: queue.SimpleQueue[tuple[Task, Event]] = queue.SimpleQueue()
        self._futures: dict[str, Any] = {}

    def submit(self, task: Task) -> None:
        """See `grading.Backend`."""
        future = self.client.submit(work, task.line(), pure=False)
        self._futures[task.name] = future
        future.add_done_callback(partial(self._done, task))

    def _done(self, task: Task, future: Any) -> None:  # noqa: ANN401
        """Runs in a thread of the client's when a worker has answered, or is dead."""
        try:
            told = future.result()
        except Exception as error:  # whatever dask raises for a worker that is gone
            words = str(error).splitlines() or [""]
            told = [{"event": "lost", "message": f"{type(error).__name__}: {words[0]}"}]
        for event in told:
            self._heard.put((task, event))

    def next(self) -> tuple[Task, Event]:
        """See `grading.Backend`."""
        task, event = self._heard.get()
        if event["event"] in ("end", "lost"):
            self._futures.pop(task.name, None)
        return task, event

    def close(self) -> None:
        """See `grading.Backend`."""
        self.client.close()
        self.cluster.close()
