"""Rules over words: orders to a model that have no place in the description of a tool."""

from __future__ import annotations

from toolscout.indexing.screen.languages import CONCEAL, OVERRIDE
from toolscout.indexing.screen.rule import Rule, pattern

_RULES = r"(?:instructions?|prompts?|rules?|directives?|directions|guidelines?|guidance|orders|commands|constraints)\b"
_USER = r"(?:the |your |this |any )?(?:end[- ]?)?(?:user|human|person|customer|people|anyone|anybody|someone)\b"
_NOT = (
    r"\b(?:do not|don't|dont|don t|do n't|never|must not|mustn't|should not|shouldn't|not to|no need to|needn't|"
    r"avoid|without|refrain from|instead of)\b"
)
_PATH = (
    r"(?:\.ssh/(?!\S{0,40}\.pub)(?!config\b)|\bid (?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|\.aws/|\.kube/|\.gnupg|\.netrc|"
    r"\.npmrc|\.pypirc|\.git-credentials|\.pgpass|\.cursor/|\bmcp\.json|claude desktop config|\.(?:bash|zsh) history|"
    r"/etc/(?:passwd|shadow)|\.env\b|\bdot ?env\b|wallet\.dat|\.kdbx|\blogin data\b|\.docker/|gh/hosts|"
    r"\bkubeconfig|\bkeychain\b|\bsecrets?\.(?:json|ya?ml|txt)|\bcredentials\.json|\.config/gcloud)"
)
_PATH_CUES = (
    ".ssh|id rsa|id ed25519|id ecdsa|.aws|.kube|.gnupg|.netrc|.npmrc|.pypirc|.git-cred|.pgpass|.cursor|mcp.json|"
    "claude desktop|bash history|zsh history|/etc/passwd|/etc/shadow|.env|dotenv|dot env|wallet.dat|.kdbx|login data|"
    ".docker|gh/hosts|kubeconfig|keychain|secret.|secrets.|credentials.json|gcloud"
)
_SECRET = (
    r"(?:private (?:ssh )?keys?|ssh keys?|api[ -]?keys?|(?:session|access|auth|github|openai|slack|bearer) tokens?|"
    r"passwords?|passphrases?|credentials?|secrets|seed phrases?|environment variables?|env (?:vars?|file)|"
    r"cookies|openai api key|clipboard|shell history|saved logins)\b"
)
_SECRET_CUES = (
    "private key|private ssh|ssh key|api key|api-key|apikey|token|password|passphrase|credential|secret|seed phrase|"
    "environment var|env var|env file|cookies|clipboard|shell history"
)
_TALK = (
    r"(?:(?:whole|entire|full|complete|verbatim|all)(?: of)?(?: the| this| our)? (?:conversation|chat|dialogue|"
    r"transcript|message history|user messages|messages (?:the user|so far))|(?:text|copy|content|contents|transcript) "
    r"of (?:the|this|our)(?: \w+){0,2} (?:conversation|chat)|chat history|conversation history|"
    r"(?:your|its|the) (?:\w+ )?system prompt|hidden instructions|what the user (?:told|said|wrote|typed)|"
    r"user'?s? (?:last |previous |earlier )?messages?\b)"
)
_TALK_CUES = "conversation|chat|dialogue|transcript|messages|system prompt|hidden instructions|what the user|message"
_GIVE = (
    r"\b(?:put|place|include|pass|insert|paste|add|attach|supply|supplied|provide|fill|give|giving|submit|send|"
    r"populate|append|copy|hand|forward|write|passed|upload|leak|transmit)\b"
)
_ORDER = r"\b(?:must|always|have to|has to|need to|needs to|required|first|should|shall|obliged|mandatory)\b"
_TO = (
    r"(?:https?://(?!(?:api|www)?\.?example\.)|[\w.+-]{1,40}@[\w-]{1,40}\.\w|\bwebhook\.site|\boast\.|requestbin|"
    r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}|external (?:server|host|url|endpoint)|third[- ]party (?:server|host|url)|"
    r"\battacker|\bevil[.-])"
)
_TO_CUES = "http|@|webhook|oast.|requestbin|external|third|attacker|evil|1|2"

PHRASES: tuple[Rule, ...] = (
    Rule(
        id="override",
        sentence="It tells the model to set its instructions aside.",
        patterns=(
            pattern(
                "ignor|disregard|forget",
                r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?)\b~30\b(?:previous|prior|above|earlier|preceding|"
                r"former|existing|original|old|initial|your|you were|all|any|system|foregoing|safety|developer)\b~25"
                + _RULES,
            ),
            pattern(
                "forget|disregard|ignore",
                r"\b(?:forget|disregard|ignore)\b ?(?:about )?(?:everything|all|anything|whatever)\b~20\b(?:above|before|"
                r"prior|previously|you (?:know|were|have|learned)|rules|user|said)",
            ),
            pattern(
                "your|system",
                r"\b(?:override|bypass|drop|set aside|abandon|skip|suspend|circumvent|replace|disobey|break|violate)\b~20"
                r"\b(?:your|system prompt|the model's|the assistant's|developer)\b~25(?:"
                + _RULES
                + r"|polic|safe|restrict|guard|"
                r"filter|training|system prompt)",
            ),
            pattern(
                "instruction|prompt|rule|directi|guideline|polic|restriction|safety|refusal|order",
                r"\b(?:prior|previous|earlier|your|original|system|safety|content|old|security)\b~20\b(?:instructions?|"
                r"guidelines?|rules|prompts?|directi\w+|polic\w+|restrictions?|filters?|checks?|orders|ones)\b~40"
                r"\b(?:no longer|outdated|revoked|void|superseded|obsolete|suspended|lifted|disabled|cancell?ed)\b",
            ),
            pattern(
                "comply|follow|obey|adhere|listen",
                r"(?:not|n't|never|stop) (?:comply|follow|obey|adhere|listen)\w*\b~25\b(?:earlier|previous|prior|system|"
                r"original|developer|your)\b~25(?:" + _RULES + "|developer|user)",
            ),
            pattern(
                "new task|new instr|new goal|new direct|new rules|new orders|new role|new mission|new objective",
                r"\b(?:your new (?:task|goal|role|mission|objective|instructions?|directives?|rules|orders)\b|new "
                r"(?:directives?|instructions|orders|rules) (?:follow|below|from|are))",
            ),
            pattern(
                "as commands|as instructions|as orders|as a command|as an instruction|as system",
                r"\b(?:treat|regard|consider|interpret|take|obey)\b~60\bas (?:an? )?(?:commands?|instructions?|orders?|"
                r"system messages?)\b",
            ),
            pattern(
                "only rules|only instructions|this description instead|whatever it says|what it says|whatever the|tells you",
                r"\bthe only (?:rules|instructions)\b|\bfollow this description\b|\b(?:do|execute|follow|obey|perform) "
                r"what(?:ever)? (?:the|it|this|that|is)\b~30\b(?:says?|tells?|orders?|asks?)\b",
            ),
            *OVERRIDE,
        ),
    ),
    Rule(
        id="conceal",
        sentence="It tells the model to keep something from the user.",
        patterns=(
            pattern(
                "tell|inform|alert|warn|advise|let|notify|say",
                _NOT
                + r"~15\b(?:tell|inform|alert|warn|advise|let|notify|telling|informing|alerting|notifying)\b ?"
                + _USER
                + r"(?: know| see| notice)?(?: ?[.!,;)\0]|$| (?:about|that|of|which|what|how|why|this|these|any|"
                r"anything|because|and|you|it|or)\b)",
            ),
            pattern(
                "mention|reveal|disclose|discuss|divulge|bring it|bring this|say so|show|talk about",
                _NOT
                + r"~12\b(?:be )?(?:mention|reveal|disclos|discuss|divulg|bring|say|talk about)(?:e|ed|ing|d)?\b~20\b"
                r"(?:this|it|these|that you|so|any of|them|the (?:file|step|tool|user|human|person))\b",
            ),
            pattern(
                "mention|discussed|disclosed|revealed|told",
                r"\b(?:must|should|may|can|is)(?: not|n't|not| never)? (?:not |never )?be (?:mentioned|discussed|disclosed|revealed|"
                r"told)\b|\bavoid any mention|\b(?:never|not) mention (?:it|this|that)\b|\bno mention of (?:it|this)\b|"
                r"\bmust not be (?:discussed|mentioned|told)\b",
            ),
            pattern(
                "without",
                r"\bwithout (?:the |any )?(?:user|human|person|customer|owner)(?:'s|s)? ?(?:knowledge|awareness|knowing|"
                r"noticing|being (?:aware|told|informed))|\bwithout (?:telling|informing|alerting|notifying) (?:the|your) "
                r"(?:user|human|person|customer)",
            ),
            pattern(
                "from the user|from the human|from your user|from the person|from the customer|from them|from the owner",
                r"\b(?:keep|hide|conceal|withhold|hidden|secret)\b~40\bfrom (?:the|your) (?:user|human|person|customer|owner)",
            ),
            pattern(
                "user|human|person|customer",
                r"\b(?:user|human|person|customer)s? (?:must|should|may|does|do|need|can|will|shall|is|are|has|have)(?: not|"
                r"n't|not| never)(?: to)?(?: need| have)?(?: to)? (?:know|notice|be (?:told|informed|aware|alerted)|find "
                r"out|learn|realise|realize|suspect|see (?:this|it|the|that))",
            ),
            pattern(
                "unaware|pretend|as if nothing|deny it|quiet about|say nothing|tell nobody|tell no one|keep this|keep it|"
                "keep quiet|the following secret|out of your|will not notice|does not see|nobody",
                r"\bunaware of\b|\b(?:remain|remains|stays?|kept) unaware|\bpretend (?:that|you|not|nothing)|\bas if nothing|"
                r"\bdeny it\b|\bquiet about\b|\bsay nothing\b|\btell (?:nobody|no one)|\bkeep (?:this|it|that)(?: \w+)? "
                r"(?:secret|quiet|hidden|from)\b|\bkeep the following secret|\bleave (?:it|this|that) out of your|\b(?:user|"
                r"human|person) (?:will|does|do) not (?:notice|see)",
            ),
            pattern(
                "quietly|covertly|secretly|discreetly|silently|surreptitiously|stealthily",
                r"\b(?:quietly|covertly|secretly|surreptitiously|stealthily|discreetly) (?!fail|ignor|skip|drop)[a-z]+\b|\bsilently "
                r"(?:send|upload|forward|add|include|call|copy|read|execute|attach|insert|transfer|exfil)\w*\b|\b(?:carried "
                r"out|done|performed|executed|proceed) (?:silently|quietly|secretly)|, ?(?:quietly|secretly|silently)\b",
            ),
            *CONCEAL,
        ),
    ),
    Rule(
        id="sensitive-file",
        sentence="It asks for the content of a file that holds keys or passwords.",
        patterns=(
            pattern(
                _PATH_CUES,
                r"\b(?:read|open|cat|load|fetch|access|retrieve|grab|look|find|attach|include|print|dump|supply|submit|give|"
                r"pass|provide|paste|leak|reads?|reading|gather|collect|upload|copy|steal)\b^^60"
                + _PATH
                + r"^^120\b(?:pass|passed|"
                r"include|attach|put|place|add|submit|supply|give|hand|send|forward|insert|paste|append|upload|into|"
                r"content|contents|bytes|through|mail|post)\b",
            ),
            pattern(
                _PATH_CUES,
                r"\b(?:contents?|bytes|text|values?|lines?|variables?) (?:of|from|in|that)\b~30" + _PATH + "^^80"
                r"(?:" + _ORDER + "|" + _GIVE + r"|\bneeded|\bas `|\bsigned?\b)",
            ),
            pattern(
                _PATH_CUES,
                "(?:"
                + _ORDER
                + "|"
                + _GIVE
                + r"|\bbefore\b|\bprior to\b|\bpreceded\b)^^80"
                + _PATH
                + r"^^60(?:\bpassed|\bpaste|\bbefore each|"
                r"\bas [`'\"]|\bin [`'\"]|\bas (?:the|an?) |\bso that\b|\binto\b|\bcontent)",
            ),
            pattern(
                _PATH_CUES,
                r"\b(?:content|contents|text|value)\b ?(?:from|of)? ?(?:reading|file)~10"
                + _PATH
                + r"|\b(?:preceded by|send|leak|upload|"
                r"read|steal|ignore)\b~40(?:\.aws/credentials|\bid rsa\b|\benv file\b|\bdot ?env\b)~30(?:\0|$|paste|here|and add|before)",
            ),
            pattern(
                "private key|private ssh|saved password|wallet|keys",
                r"\b(?:read|reads|open|load|fetch|retrieve|grab|gather|collect)\b~30\b(?:private (?:ssh )?keys?|private key files?|saved "
                r"passwords|crypto wallets?)\b~40(?:" + _GIVE + r"|\bcontents?\b|\breturns?\b)",
            ),
        ),
    ),
    Rule(
        id="secret-argument",
        sentence="It asks the model to put secrets or the conversation into an argument.",
        patterns=(
            pattern(
                _SECRET_CUES,
                _GIVE
                + r"~35\b(?:user'?s?|any|all|every|found|values? of|their|environment|the)\b~30"
                + _SECRET
                + r"~60"
                r"(?:\bfound\b|\b(?:in|as|into|to) (?:the |this |your |next )*[`'\"]|\bquery suffix|\bnext call|\bsay nothing|"
                r"\bthat mention\b|\bthey have\b|\bso we\b|\b(?:user|author)'s\b|\bin (?:the|this) (?:note|comment|context|"
                r"metadata|title|log|trace|url|query|request|message|body|header)\b)",
            ),
            pattern(
                "environment var|env var|token|api key|password|cookies|credentials",
                r"\b(?:gather|collect|grab|find|read|get|fetch|use)\b~25\b(?:environment variables?|env vars?|session tokens?|"
                r"cookies|user'?s? (?:password|credentials|tokens?|keys?)|clipboard)\b~40(?:"
                + _GIVE
                + r"|you find|in cookies)",
            ),
            pattern(
                "environment|token|api key",
                r"\bset in the environment~12\b(?:put|add|include|pass|place)|\b(?:values? of|all|any) (?:any |the )?environment "
                r"variables? (?:that|in|which|here|with)",
            ),
            pattern(
                _TALK_CUES,
                _GIVE
                + r"~40"
                + _TALK
                + r"^^60(?:\bhere\b|\bso far\b|\bword for word|\bverbatim|\bin (?:the|this) (?:session|"
                r"field|argument|parameter|body|request)|\b(?:to|in|into|as|with) (?:the |this )?[`'\"]?\w+[`'\"]?(?: "
                r"(?:argument|parameter|field))?\b)",
            ),
            pattern(
                "messages|message",
                r"\ball (?:the )?messages (?:that )?(?:the )?user (?:has |have )?(?:written|sent|typed)|\bfill (?:this|it)(?: in)? with "
                r"(?:its|your|the)\b",
            ),
            pattern(
                "password",
                r"\b(?:giving|give|supply|enter|provide|put|pass|attach|add)\b~15\buser'?s?\b~10\bpasswords?\b~30\b(?:mail|account|field|"
                r"header|in)\b",
            ),
        ),
    ),
    Rule(
        id="reveal-prompt",
        sentence="It asks for the instructions that the model was given.",
        patterns=(
            pattern(
                "system prompt|instructions|system message|your prompt|the prompt",
                r"\b(?:reveal|print|output|repeat|leak|disclose|expose|dump|recite|show|share|include|paste|write|give|put|supply|"
                r"divulge|fill|tell|send)\b~30\b(?:your|its|assistant's|model's)\b ?(?:own |full |entire |original |hidden |secret |"
                r"initial |whole )*(?:system prompt|system message|instructions|prompt|system instructions)\b",
            ),
            pattern(
                "system prompt|the prompt",
                r"\b(?:reveal|leak|divulge|exfiltrate|steal)\b~15\b(?:system )?prompt\b",
            ),
        ),
    ),
)
