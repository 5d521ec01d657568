"""A model as judge: five dimensions or nothing, solved or not."""

from agentmark_lab.envs.oasis import Act, Trajectory
from agentmark_lab.experiments.social.social_quality import transcript
from agentmark_lab.kit.model_judge import DIMENSIONS, Judge, open_judge
from agentmark_lab.kit.options import JudgeChoice

from agentmark.elicit.chat import ChatRequest, FunctionChat
from agentmark.elicit.http_chat import HttpChat


def test_the_judge_scores_five_dimensions_or_nothing():
    asked: list[ChatRequest] = []
    replies = iter(
        [
            'Here: {"coherence": 7, "memory accuracy": 8, "character stability": 9, '
            '"social norms and common sense": 6.5, "language diversity": 3}',
            '{"coherence": 7}',
            '{"coherence": 70, "memory accuracy": 8, "character stability": 9, '
            '"social norms and common sense": 6, "language diversity": 3}',
            "no",
        ]
    )

    def complete(request: ChatRequest) -> str:
        asked.append(request)
        return next(replies)

    judge = Judge(FunctionChat("judge", complete=complete))
    told = transcript(Trajectory("Geek", [], [Act("like_post", {"post_id": 3}, "Like record already exists.")]))
    scores = judge.scores("You love silicon.", told)
    assert scores == dict(zip(DIMENSIONS, [7, 8, 9, 6.5, 3], strict=True))
    assert "like_post(post_id=3) (refused: Like record already exists.)" in str(asked[0].messages)
    assert [judge.scores("", "") for _ in range(3)] == [None, None, None]


def test_a_judge_says_whether_a_task_was_solved():
    said = iter(['{"solved": true}', 'Well: {"solved": false}.', '{"solved": "yes"}', "yes", '["solved"]'])
    asked = []

    def complete(request):
        asked.append(request)
        return next(said)

    judge = Judge(FunctionChat("judge", complete=complete))
    assert judge.solved("Find a flight.", "search: three flights") is True
    assert "search: three flights" in str(asked[0].messages)
    assert [judge.solved("", "") for _ in range(4)] == [False, None, None, None]


def test_a_judge_is_opened_where_one_is_given() -> None:
    assert open_judge(None) is None
    judge = open_judge(JudgeChoice("http://127.0.0.1:1/v1", "m", "key"))
    assert judge is not None
    assert isinstance(judge.chat, HttpChat)
