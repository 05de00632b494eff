"""`python -m services.judge`: serve JudgeService."""

from __future__ import annotations

from policysweep.config import load_config
from policysweep.models.openai_api import OpenAIChatModel
from policysweep.rpc.server import run_main, run_service
from policysweep.telemetry import configure_logging
from services.judge.config import JudgeConfig
from services.judge.rubric_files import RubricLibrary
from services.judge.service import Judge, judge_service


async def _main() -> None:
    config = load_config(JudgeConfig, "judge")
    configure_logging(config.log_level)
    rubrics = RubricLibrary.read(config.rubrics)
    async with OpenAIChatModel.of(config) as model:
        await run_service(config, "judge", [judge_service(Judge(config, model, rubrics))])


if __name__ == "__main__":
    run_main(_main())
