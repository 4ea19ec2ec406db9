"""Rules over words: text that pretends to be something else, or is meant for other eyes than the user's."""

from __future__ import annotations

from toolscout.indexing.screen.rule import Rule, pattern

DISGUISE: tuple[Rule, ...] = (
    Rule(
        id="decode-and-obey",
        sentence="It tells the model to decode something and act on it.",
        patterns=(
            pattern(
                "decode|base64|rot13|translate|unscramble|reverse|backwards|character|letters|hex & obey|"
                "do|carry|comply|order|instruction|command|perform|follow|execute",
                r"\b(?:decode|base64|rot13|translate|unscramble|reverse|backwards?|character codes|first letters|"
                r"hex)\b^^70\b(?:obey|do what|carry out|"
                r"comply|as an? (?:order|instruction|command)|perform what|follow (?:it|them|the|what)|"
                r"execute (?:it|them|what))\b",
            ),
        ),
    ),
    Rule(
        id="addressed-to-model",
        sentence="It speaks to the model behind the user's back, by a tag, a heading or by name.",
        patterns=(
            pattern(
                "important|critical|secret|hidden|urgent|system|admin|mandatory|attention|instructions|"
                "instruction & </",
                r"<!? ?(important|critical|secret|hidden|urgent|system|admin|mandatory|attention|"
                r"instructions? (?:for|to) [a-z ]{2,20}|(?:ai|llm|model|"
                r"assistant|agent) instructions?)!? ?>[^\0]{12,4000}?</!? ?\1",
            ),
            pattern(
                "hidden|secret|system|ai|llm|llms & [|{|(|ui",
                r"\[(?:system|admin|assistant|developer|sys|root)\]|[\[{(]{1,2} ?(?:hidden|secret|system (?:notice|"
                r"message|note|update|override)|for (?:ai|llm)s? only)\b ?[:\]]|\bhidden from (?:the )?ui\b",
            ),
            pattern(
                "note|assistant|model|llm|ai & model|ai|assistant|llm|agent",
                r"(?:\b(?:assistant|model|llm|ai)) ?[:,] ?(?:please )?(?:read|fetch|ignore|disregard|"
                r"forward|attach|send|upload|call|prior|put|include|do not|never|gather|you must|output|reveal)\b",
            ),
            pattern(
                "assistant|model|llm|ai|agent|agents & must|should|has|required|shall",
                r"\b(?:the )?(?:assistant|model|ai agent|llm|agents?|ai) (?:has to|must|is required to|"
                r"shall)(?: also| always| not)? (?:open|read|hand|fill|"
                r"ignore|run|upload|send|forward|copy|include|gather|call read|execute)\b|\b(?:assistant|model|llm|"
                r"ai|agents?) should (?:also|not) (?:ask for "
                r"confirmation|send|upload|run|read|forward)\b",
            ),
        ),
    ),
    Rule(
        id="role-marker",
        sentence="It imitates the markers that divide a prompt into speakers.",
        patterns=(
            pattern(
                "<|",
                r"<\| ?(?:im (?:start|end|sep)|system|user|assistant|endoftext|eot id|(?:start|end) header id|"
                r"begin of text|end of text) ?\|?>",
            ),
            pattern("inst|sys|turn", r"\[/?inst\]|<</?sys>>|<(?:start|end) of turn>"),
            pattern(
                "system & :",
                r"(?:^|\0|[.!?#] ?|# |\b[a-z]+ )(?<!operating )(?<!file )(?:### ?)system ?:|(?:^|\0|"
                r"[.!?)] )system ?: ?(?:you|all|new|grant|ignore|the user|override|"
                r"approve|security|disable)\b",
            ),
            pattern(
                "system|assistant & ---|===|###|***",
                r"[-=#*]{3,} ?(?:system|assistant)(?: prompt| message| override)? ?(?:[-=#*]{3,}|:)",
            ),
            pattern("human & assistant", r"\bhuman: [^\0]{3,300}?\bassistant: "),
            pattern(
                "</",
                r"</(?:tool description|tools|function call|system prompt|tool)> ?(?:</|<system|<user|<instruction)|"
                r"<system>[^\0]{6,600}?</system>",
            ),
        ),
    ),
    Rule(
        id="hidden-markup",
        sentence="It holds text in markup that a page would not show.",
        patterns=(
            pattern(
                "<!--",
                r"<!--[^\0]{0,300}?\b(?:assistant|model|agents?|ai|llm|you|user|must|should|always|ignore|forward|"
                r"upload|send|fetch|system)\b[^\0]{0,300}?-->",
            ),
            pattern("[//]|[comment]", r"\[(?://|comment)\]: ?(?:#|<>) ?[(\"'][^\0]{10}"),
            pattern("/*", r"/\*[^\0*]{0,200}\b(?:hidden|assistant|agent|model|user's|ai)\b[^\0*]{0,200}\*/"),
            pattern(
                "style|hidden & <",
                r"<[a-z]{1,10} [^>\0]{0,80}(?:display: ?none|visibility: ?hidden|font-size: ?0|opacity: ?0\b|"
                r"color: ?(?:#fff|white|transparent))[^>\0]{0,80}>[^<\0]{8}|"
                r"<(?:div|span|p|section|details) hidden>[^<\0]{8}",
            ),
        ),
    ),
    Rule(
        id="note-to-model",
        sentence="It addresses a note to the model, which honest servers do too.",
        severity="notice",
        patterns=(
            pattern(
                "note|notes|instructions|instruction & model|ai|assistant|llm|llms|agent|agents",
                r"\b(?:notes?|instructions?) (?:to|for) (?:the )?(?:model|ai|assistant|llm|agent)s?\b",
            ),
        ),
    ),
    Rule(
        id="prefers-itself",
        sentence="It asks to be chosen over other tools, or before them.",
        severity="notice",
        patterns=(
            pattern(
                "this|instead|before & always|must|other",
                r"\b(?:always|must)(?: always)? (?:use|call) this\b|\binstead of (?:any |all )?other tools?\b|"
                r"\bbefore any other tools?\b",
            ),
        ),
    ),
)
