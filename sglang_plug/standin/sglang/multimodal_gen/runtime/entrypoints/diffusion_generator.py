"""`DiffGenerator`: images from a script, with workers of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ...configs.sample.sampling_params import SamplingParams, generate_request_id
from ..pipelines_core.schedule_batch import ControlReq, Req
from ..platforms.plugins import apply_plugin_hooks
from ..scheduler_client import SchedulerClient
from ..server_args import ServerArgs
from .images import encode, save

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from typing import Self

CONNECT_MS = 30_000


@dataclass
class GenerationResult:
    """One image.

    Attributes:
        samples: its pixels, (height, width, 3) bytes.
        frames: the pixels as a list of one frame.
        prompt, prompt_index, size: what it was made for; size is (height, width, frames).
        generation_time: seconds.
        metrics: seconds of each stage.
        output_file_path: where it was saved.
    """

    samples: Any = None
    frames: Any = None
    prompt: str | None = None
    size: tuple[int, int, int] | None = None
    generation_time: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    prompt_index: int = 0
    output_file_path: str | None = None

    @property
    def png(self) -> bytes:
        """The image as the bytes of a PNG file."""
        return encode(self.samples)


class DiffGenerator:
    """Makes images from prompts. Use it as a context manager, or call `shutdown()`: the workers are its children."""

    def __init__(self, server_args: ServerArgs) -> None:
        self.server_args = server_args
        self.client = SchedulerClient(server_args, self._ended)
        self.local_scheduler_process: list[BaseProcess] | None = None

    def _ended(self) -> list[str]:
        from ..launch_server import describe_end

        return [describe_end(process, "too early") for process in self.local_scheduler_process or () if not process.is_alive()]

    @classmethod
    def from_pretrained(cls, local_mode: bool = True, **kwargs: Any) -> DiffGenerator:
        """Return a generator for `model_path=…` and any other server argument.

        Raises:
            ValueError: see `ServerArgs`.
            WorkerFailed: a worker did not come up.
        """
        apply_plugin_hooks()  # before the arguments: they ask the platform, and hooks may change how
        server_args = kwargs.pop("server_args", None)
        if isinstance(server_args, dict):
            server_args = ServerArgs.from_kwargs(**server_args)
        return cls._create(server_args or ServerArgs.from_kwargs(**kwargs), local_mode=local_mode)

    @classmethod
    def from_server_args(cls, server_args: ServerArgs, local_mode: bool = True) -> DiffGenerator:
        """Return a generator for arguments that exist already.

        Raises:
            WorkerFailed: a worker did not come up.
        """
        apply_plugin_hooks()
        return cls._create(server_args, local_mode=local_mode)

    @classmethod
    def _create(cls, server_args: ServerArgs, *, local_mode: bool) -> DiffGenerator:
        generator = cls(server_args)
        if local_mode:
            from ..launch_server import launch_server

            generator.local_scheduler_process = launch_server(server_args, launch_http_server=False)
        else:
            generator.client.forward(ControlReq("info"), CONNECT_MS)
        return generator

    def generate(
        self, sampling_params_kwargs: dict[str, Any] | SamplingParams | None = None, **kwargs: Any
    ) -> GenerationResult | list[GenerationResult]:
        """Return the image of one prompt, or a list where there are several prompts or outputs.

        Args:
            sampling_params_kwargs: parameters as a dictionary or as `SamplingParams`.
            kwargs: parameters by name; they win.

        Raises:
            ValueError: a parameter is unknown or out of range.
            RuntimeError: the workers could not make the image.
            SchedulerUnreachable: a worker has ended, or all were shut down.
            OSError: the image cannot be written.
        """
        params = self._params(sampling_params_kwargs, kwargs)
        if params.prompt in (None, []):
            raise ValueError("prompt must be a text or a list of texts, not empty")
        prompts = params.prompt if isinstance(params.prompt, list) else [params.prompt or ""]
        if len(prompts) > 1 and params.output_file_name is not None:
            raise ValueError("output_file_name cannot name the images of several prompts; leave it out, or give one prompt")
        results = [result for index, prompt in enumerate(prompts) for result in self._one(params, prompt, index, len(prompts))]
        return results[0] if len(results) == 1 else results

    @staticmethod
    def _params(given: dict[str, Any] | SamplingParams | None, kwargs: dict[str, Any]) -> SamplingParams:
        if not isinstance(given, dict | SamplingParams | None):
            raise ValueError(f"parameters come as a dictionary or as SamplingParams, not {given!r}; a prompt goes by name: prompt=…")
        merged = {**(given if isinstance(given, dict) else {}), **kwargs}
        unknown = sorted(set(merged) - SamplingParams.field_names())
        if unknown:
            raise ValueError(f"unknown sampling parameters: {', '.join(unknown)}")
        return replace(given, **merged) if isinstance(given, SamplingParams) else SamplingParams(**merged)

    def _one(self, params: SamplingParams, prompt: str, index: int, prompts: int) -> list[GenerationResult]:
        start = time.perf_counter()
        answer = self.client.forward(Req(replace(params, prompt=prompt, request_id=params.request_id or generate_request_id())))
        if answer.error is not None:
            raise (ValueError if answer.error_type == "invalid_request" else RuntimeError)(answer.error)
        seconds, folder = time.perf_counter() - start, params.output_path or self.server_args.output_path
        results = []
        for number, pixels in enumerate(answer.output):
            saved = None
            if params.save_output and folder:
                several = prompts * len(answer.output) > 1
                name = params.output_file_name or f"{''.join(c if c.isalnum() else '_' for c in prompt)[:50] or 'image'}_{params.seed}"
                saved = str(save(pixels, folder, f"{index}-{number}-{name}" if several else name))
            size = (params.height, params.width, 1)
            results.append(GenerationResult(pixels, [pixels], prompt, size, seconds, answer.metrics, index, saved))
        return results

    def shutdown(self) -> None:
        """End the workers."""
        self.client.close()
        if self.local_scheduler_process is not None:
            from ..launch_server import shutdown_scheduler_processes

            shutdown_scheduler_processes(self.server_args, self.local_scheduler_process)
            self.local_scheduler_process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
