"""What kind of task a message is, by simple rules, until the first Decision says so itself."""

import re

from duckflow.state.action import TaskProfile

RULES: tuple[tuple[TaskProfile, re.Pattern[str]], ...] = tuple(
    (profile, re.compile(words, re.IGNORECASE))
    for profile, words in (
        (
            TaskProfile.DEBUGGING,
            r"\b(?:fix|debug|bugs?|broken|crash\w*|traceback|exception|fail(?:s|ed|ing)?|errors?)\b"
            r"|バグ|デバッグ|エラー|不具合|直して|修正|落ちる|動かない",
        ),
        (
            TaskProfile.MULTI_STEP_TASK,
            r"\b(?:implement|build|refactor|migrate|port|set up|step by step|application|project|feature)\b"
            r"|実装|リファクタ|移行|作り直|アプリ|ゲームを|機能を",
        ),
        (
            TaskProfile.RESEARCH,
            r"\b(?:research|investigate|compare|survey|find out|look into)\b|調べ|調査|比較|リサーチ",
        ),
        (
            TaskProfile.COMPLEX_REASONING,
            r"\b(?:design|architecture|prove|algorithm|trade-?offs?|strategy|optimi[sz]e)\b|設計|証明|アルゴリズム|最適化|戦略",
        ),
        (
            TaskProfile.CODE_ANALYSIS,
            r"\b(?:analy[sz]e|review|explain (?:the|this|how)|understand|read through|how does)\b"
            r"|解析|分析|レビュー|コードを説明|読んで",
        ),
        (
            TaskProfile.CREATIVE_WRITING,
            r"\b(?:story|poem|essay|blog|article|readme|documentation|docs|slogan)\b|物語|小説|詩を|記事|文章|ドキュメント",
        ),
        (
            TaskProfile.FILE_OPERATION,
            r"\b(?:create|write|rename|move|delete|remove|copy|edit|add|change|list)\b|[\w-]\.[a-z]{1,5}\b"
            r"|作成|作って|削除|移動|書いて|追加|変更|ファイル|一覧",
        ),
    )
)
QUESTION = re.compile(
    r"[?？]\s*$|^(?:what|who|when|where|which|why|how|is|are|can|does|do)\b|ですか|ますか|とは", re.IGNORECASE
)
LONG = 400


def guess_profile(text: str) -> TaskProfile:
    """The first rule that fits; a plain question or a chat when none does."""
    for profile, words in RULES:
        if words.search(text):
            return profile
    if QUESTION.search(text.strip()):
        return TaskProfile.SIMPLE_QUESTION
    return TaskProfile.MULTI_STEP_TASK if len(text) > LONG else TaskProfile.GENERAL_CHAT
