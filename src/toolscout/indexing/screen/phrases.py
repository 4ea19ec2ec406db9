"""Rules over words: orders to a model that have no place in the description of a tool."""

from __future__ import annotations

from toolscout.indexing.screen.languages import CONCEAL, OVERRIDE
from toolscout.indexing.screen.rule import Rule, pattern

_RULES = (
    r"(?:instructions?|prompts?|rules?|directives?|directions|guidelines?|guidance|orders|commands|"
    r"constraints)\b"
)
_USER = r"(?:the |your |this |any )?(?:end[- ]?)?(?:user|human|person|customer|people|anyone|anybody|someone)\b"
_NOT = (
    r"\b(?:do not|don't|dont|don t|do n't|never|must not|mustn't|should not|shouldn't|not to|no need to|needn't|"
    r"avoid|without|refrain from|instead of)\b"
)
_PATH = (
    r"(?:\.ssh/(?!config\b)(?!(?:id )?\w{1,20}\.pub)|(?<!\.ssh/)\bid (?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)|\.aws/|"
    r"\.kube/|\.gnupg|\.netrc|"
    r"\.npmrc|\.pypirc|\.git-credentials|\.pgpass|\.cursor/|\bmcp\.json|claude desktop config|\.(?:bash|zsh) history|"
    r"/etc/(?:passwd|shadow)|\.env\b|\bdot ?env\b|wallet\.dat|\.kdbx|\blogin data\b|\.docker/|gh/hosts|"
    r"\bkubeconfig|\bkeychain\b|\bsecrets?\.(?:json|ya?ml|txt)|\bcredentials\.json|\.config/gcloud)"
)
_NEAR = (
    "ssh|rsa|ed25519|ecdsa|dsa|aws|kube|gnupg|netrc|npmrc|pypirc|pgpass|cursor|mcp.json|claude|bash|zsh|passwd|shadow|env|"
    "dotenv|wallet|kdbx|login|docker|kubeconfig|keychain|secrets|credentials|gcloud|gh"
)
_SECRETS = (
    r"(?:private (?:ssh )?keys?|ssh keys?|api[ -]?keys?|(?:session|access|auth|github|openai|slack|bearer) tokens?|"
    r"passwords?|passphrases?|credentials?|secrets|seed phrases?|environment variables?|env (?:vars?|file)|"
    r"cookies|openai api key|clipboard|shell history|saved logins)\b"
)
_TALK = (
    r"(?:(?:whole|entire|full|complete|verbatim|all)(?: of)?(?: the| this| our)? (?:conversation|chat|dialogue|"
    r"transcript|message history|user messages|messages (?:the user|so far))|(?:text|copy|content|contents|"
    r"transcript) "
    r"of (?:the|this|our)(?: \w+){0,2} (?:conversation|chat)|chat history|conversation history|"
    r"(?:your|its|the) (?:\w+ )?system prompt|hidden instructions|what the user (?:told|said|wrote|typed)|"
    r"user'?s? (?:last |previous |earlier )?messages?\b)"
)
_GIVE = (
    r"\b(?:put|place|include|pass|insert|paste|add|attach|supply|supplied|provide|fill|give|giving|submit|send|"
    r"populate|append|copy|hand|forward|write|passed|upload|leak|transmit)\b"
)
_ORDER = r"\b(?:must|always|have to|has to|need to|needs to|required|first|should|shall|obliged|mandatory)\b"
PHRASES: tuple[Rule, ...] = (
    Rule(
        id="override",
        sentence="It tells the model to set its instructions aside.",
        patterns=(
            pattern(
                "ignore|ignoring|disregard|forget & instructions|prompt|prompts|rule|rules|directives|"
                "directions|guidelines|guidance|orders|order|commands|constraints",
                r"\b(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?)\b~30\b(?:previous|prior|above|earlier|"
                r"preceding|"
                r"former|existing|original|old|initial|your|you were|all|any|system|foregoing|safety|developer)\b~25"
                + _RULES,
            ),
            pattern(
                "forget|disregard|ignore & everything|all|anything|whatever",
                r"\b(?:forget|disregard|ignore)\b ?(?:about )?(?:everything|all|anything|whatever)\b~20\b(?:above|"
                r"before|"
                r"prior|previously|you (?:know|were|have|learned)|rules|user|said)",
            ),
            pattern(
                "override|bypass|drop|aside|abandon|skip|suspend|circumvent|replace|disobey|break|"
                "violate & your|system|model|assistant|developer",
                r"\b(?:override|bypass|drop|set aside|abandon|skip|suspend|circumvent|replace|disobey|break|"
                r"violate)\b~20"
                r"\b(?:your|system prompt|the model's|the assistant's|developer)\b~25(?:"
                + _RULES
                + r"|polic|safe|restrict|guard|"
                r"filter|training|system prompt)",
            ),
            pattern(
                "longer|outdated|revoked|void|superseded|obsolete|suspended|lifted|disabled & prior|"
                "previous|earlier|your|original|system|safety|content|old|security",
                r"\b(?:prior|previous|earlier|your|original|system|safety|content|old|"
                r"security)\b~20\b(?:instructions?|"
                r"guidelines?|rules|prompts?|directi\w+|polic\w+|restrictions?|filters?|checks?|ones)\b~40"
                r"\b(?:no longer|outdated|revoked|void|superseded|obsolete|suspended|lifted|disabled)\b",
            ),
            pattern(
                "comply|follow|following|obey|obeying|adhere|listen & earlier|previous|prior|system|"
                "original|developer|your",
                r"(?:not|n't|never|stop) (?:comply|follow|obey|adhere|listen)\w*\b~25\b(?:earlier|previous|prior|"
                r"system|"
                r"original|developer|your)\b~25(?:" + _RULES + "|developer|user)",
            ),
            pattern(
                "override|bypass|circumvent|request|task & system|cancelled|canceled|replaced|void|new|your",
                r"\b(?:override|bypass|circumvent|replace) (?:the |your |any )?system prompt\b|"
                r"\byour new \w+ (?:task|goal|"
                r"mission|objective|instructions)\b|\b(?:original|user's|current|previous) request (?:is|was|"
                r"has been)(?: now)? "
                r"(?:cancell?ed|replaced|void)",
            ),
            pattern(
                "new & task|goal|role|mission|objective|instructions|prompt|prompts|rule|rules|directives|"
                "directions|guidelines|guidance|orders|order|commands|constraints",
                r"\b(?:your new (?:task|goal|role|mission|objective|instructions?|directives?|rules|orders)\b|new "
                r"(?:directives?|instructions|orders|rules) (?:follow|below|from|are))",
            ),
            pattern(
                "commands|command|instructions|orders|order|system & treat|regard|consider|interpret|take|obey",
                r"\b(?:treat|regard|consider|interpret|take|obey)\b~60\bas (?:an? )?(?:commands?|instructions?|"
                r"orders?|"
                r"system messages?)\b",
            ),
            pattern(
                "rules|instructions|description|says|say|tells|tell|orders|order|asks|ask & only|follow|"
                "obey|execute|perform|do",
                r"\bthe only (?:rules|instructions)\b|\bfollow this description\b|\b(?:do|execute|follow|obey|"
                r"perform) "
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
                "tell|telling|inform|alert|warn|advise|let|notify & user|human|person|customer|people|"
                "anyone|anybody|someone",
                _NOT
                + r"~15\b(?:tell|inform|alert|warn|advise|let|notify|telling|informing|alerting|notifying)\b ?"
                + _USER
                + r"(?: know| see| notice)?(?: ?[.!,;)\0]|$| (?:about|that|of|which|what|how|why|this|these|"
                r"any|"
                r"anything|because|and|you|it|or)\b)",
            ),
            pattern(
                "mention|reveal|disclose|discuss|divulge|bring|say|talk & do|don|dont|never|must|should|"
                "not|no|avoid|without|refrain|instead|mustn|shouldn|needn",
                _NOT + r"~12\b(?:be )?(?:mention|reveal|disclos|discuss|divulg|bring|say|talk about)(?:e|ed|ing|"
                r"d)?\b~20\b"
                r"(?:this|it|these|that you|that it|so|any of|them|the (?:file|step|tool|user|human|person))\b",
            ),
            pattern(
                "mentioned|discussed|disclosed|revealed|told|mention & be|avoid|never|not|no",
                r"\b(?:must|should|may|can|is)(?: not|n't|not| never)? (?:not |never )?be (?:mentioned|discussed|"
                r"disclosed|revealed|"
                r"told)\b|\bavoid any mention|\b(?:never|not) mention (?:it|this|that)\b|\bno mention of (?:it|"
                r"this)\b|"
                r"\bmust not be (?:discussed|mentioned|told)\b",
            ),
            pattern(
                "without & user|users|human|person|customer|owner|telling|informing|alerting|notifying",
                r"\bwithout (?:the |any )?(?:user|human|person|customer|owner)(?:'s|s)? ?(?:knowledge|awareness|"
                r"knowing|"
                r"noticing|being (?:aware|told|informed))|\bwithout (?:telling|informing|alerting|notifying) (?:the|"
                r"your) "
                r"(?:user|human|person|customer)",
            ),
            pattern(
                "keep|hide|conceal|withhold|hidden|secret & user|human|person|customer|owner",
                r"\b(?:keep|hide|conceal|withhold|hidden|secret)\b~40\bfrom (?:the|your) (?:user|human|person|"
                r"customer|owner)",
            ),
            pattern(
                "know|notice|told|informed|aware|alerted|find|learn|realise|realize|suspect|see & user|"
                "users|human|humans|person|persons|customer|customers & not|never|doesn|don|shouldn|mustn|"
                "needn|cannot|won",
                r"\b(?:user|human|person|customer)s? (?:must|should|may|does|do|need|can|will|shall|is|are|has|"
                r"have)(?: not|"
                r"n't|not| never)(?: to)?(?: need| have)?(?: to)? (?:know|notice|be (?:told|informed|aware|alerted)|"
                r"find "
                r"out|learn|realise|realize|suspect|see (?:this|it|that))|\b(?:make sure|"
                r"ensure)(?: that)? the (?:user|human) (?:does|do|will) not (?:see|notice|know)",
            ),
            pattern(
                "unaware|pretend|nothing|deny|quiet|tell|keep|leave|notice|nobody & that|you|not|nothing|"
                "if|it|about|say|nobody|no|this|secret|your|of|remain|remains|stays|kept|following",
                r"\bunaware of\b|\b(?:remain|remains|stays?|kept) unaware|\bpretend (?:that|you|not|nothing)|"
                r"\bas if nothing|"
                r"\bdeny it\b|\bquiet about\b|\bsay nothing\b|\btell (?:nobody|no one)|\bkeep (?:this|it|"
                r"that)(?: \w+)? "
                r"(?:secret|quiet|hidden|from)\b|\bkeep the following secret|\bleave (?:it|this|that) out of your|"
                r"\b(?:user|"
                r"human|person) (?:will|does|do) not notice",
            ),
            pattern(
                "quietly|covertly|secretly|surreptitiously|stealthily|discreetly|silently",
                r"\b(?:quietly|covertly|secretly|surreptitiously|stealthily|discreetly) (?!fail|ignor|skip|"
                r"drop)[a-z]+\b|\bsilently "
                r"(?:send|upload|forward|add|include|call|copy|read|execute|attach|insert|transfer|exfil)\w*\b|"
                r"\b(?:carried "
                r"out|done|performed|executed|proceed) (?:silently|quietly|secretly)|, ?(?:quietly|secretly|"
                r"silently)\b",
            ),
            *CONCEAL,
        ),
    ),
    Rule(
        id="sensitive-file",
        sentence="It asks for the content of a file that holds keys or passwords.",
        patterns=(
            pattern(
                _NEAR + " & read|reads|reading|open|cat|load|fetch|access|retrieve|grab|look|find|attach|include|"
                "print|dump|supply|submit|give|pass|provide|paste|leak|gather|collect|upload|copy|steal",
                r"\b(?:read|open|cat|load|fetch|access|retrieve|grab|look|find|attach|include|print|dump|supply|"
                r"submit|give|"
                r"pass|provide|paste|leak|reads?|reading|gather|collect|upload|copy|steal)\b^^60"
                + _PATH
                + r"^^120\b(?:pass|passed|"
                r"include|attach|put|place|add|submit|supply|give|hand|send|forward|insert|paste|append|upload|into|"
                r"content|contents|bytes|through|mail|post)\b",
            ),
            pattern(
                _NEAR + " & content|contents|bytes|text|values|value|lines|line|variables",
                r"\b(?:contents?|bytes|text|values?|lines?|variables?) (?:of|from|in|that)\b~30" + _PATH + "^^80"
                r"(?:" + _ORDER + "|" + _GIVE + r"|\bneeded|\bas `|\bsigned?\b)",
            ),
            pattern(
                _NEAR + " & must|always|have|has|need|needs|required|first|should|shall|obliged|mandatory|before|"
                "prior|preceded|put|place|include|pass|insert|paste|add|attach|supply|supplied|provide|fill|give|"
                "giving|submit|send|populate|append|copy|hand|forward|write|passed|upload|leak|transmit",
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
                _NEAR + " & content|contents|text|value|preceded|send|leak|upload|read|steal|ignore",
                r"\b(?:content|contents|text|value)\b ?(?:from|of)? ?(?:reading|file)~10"
                + _PATH
                + r"|\b(?:preceded by|send|leak|upload|"
                r"read|steal|ignore)\b~40(?:\.aws/credentials|\bid rsa\b|\benv file\b|\bdot ?env\b)~30\.?(?:\0|$|"
                r"paste|"
                r"here|and add|before)",
            ),
            pattern(
                _NEAR + "|~/. & read|reads|open|access|load|cat|fetch|retrieve",
                r"(?:\b(?:you|client|agent|assistant|model) (?:must|have to|need to|should)|\bmust(?: also| first)|"
                r"\bfirst,?|\balso|\b(?:before|prior to) "
                r"(?:using|calling|each|every|any|returning|answering)\b~60)\b~15\b(?:reads?|open|access|load|cat|"
                r"fetch|retrieve)\b~50(?:" + _PATH + r"|~/\.\w)",
            ),
            pattern(
                "content|contents|text|value|values & pass|include|put|place|insert|paste|attach|supply|add|send|"
                "give & parameter|argument|field|'|`",
                r"\b(?:pass|include|put|place|insert|paste|attach|supply|add|give)\b~12\b(?:its|their|"
                r"the files?'?s?|file|files) (?:contents?|text|values?)\b~8"
                r"\b(?:as|in|into|to|with|via)\b~8(?:['`\"]|\b(?:parameter|argument|field)\b)",
            ),
            pattern(
                "private|password|credentials|tokens|cookies|ssh|env & also",
                r"\balso (?:silently )?(?:reads?|collects?|sends?|uploads?|copies|forwards?|"
                r"gathers?)\b~35\b(?:private keys?|passwords?|credentials|cookies|"
                r"(?:access|session|auth) tokens?|ssh keys?)\b",
            ),
            pattern(
                "private|saved|crypto & read|reads|open|load|fetch|retrieve|grab|gather|collect",
                r"\b(?:read|reads|open|load|fetch|retrieve|grab|gather|collect)\b~30\b(?:private (?:ssh )?keys?|"
                r"private key files?|saved "
                r"passwords|crypto wallets?)\b~40(?:" + _GIVE + r"|\bcontents?\b|\breturns?\b)",
            ),
        ),
    ),
    Rule(
        id="secret-argument",
        sentence="It asks the model to put secrets or the conversation into an argument.",
        patterns=(
            pattern(
                "private|ssh|api|apikey|apikeys|token|tokens|password|passphrase|credentials|secrets|seed|"
                "environment|env|cookies|clipboard|shell|logins & put|place|include|pass|insert|paste|add|"
                "attach|supply|supplied|provide|fill|give|giving|submit|send|populate|append|copy|hand|"
                "forward|write|passed|upload|leak|transmit & user|users|any|all|every|found|value|values|"
                "their|environment|the",
                _GIVE
                + r"~35\b(?:user'?s?|any|all|every|found|values? of|their|environment|the)\b~30"
                + _SECRETS
                + r"~60"
                r"(?:\bfound\b|\b(?:in|as|into|to) (?:the |this |your |next )*[`'\"]|\bquery suffix|\bnext call|"
                r"\bsay nothing|"
                r"\bthat mention\b|\bthey have\b|\bso we\b|\b(?:user|author)'s\b|\bin (?:the|this) (?:note|comment|"
                r"context|"
                r"metadata|title|log|trace|url|query|request|message|body|header)\b)",
            ),
            pattern(
                "environment|env|session|cookies|clipboard|user|users & gather|collect|grab|find|read|get|fetch|use",
                r"\b(?:gather|collect|grab|find|read|get|fetch|use)\b~25\b(?:environment variables?|env vars?|"
                r"session tokens?|"
                r"cookies|user'?s? (?:password|credentials|tokens?|keys?)|clipboard)\b~40(?:"
                + _GIVE
                + r"|you find|in cookies)",
            ),
            pattern(
                "environment & set|value|values|all|any",
                r"\bset in the environment~12\b(?:put|add|include|pass|place)|\b(?:values? of|all|any) (?:any |"
                r"the )?environment "
                r"variables? (?:that|in|which|here|with)",
            ),
            pattern(
                "conversation|chat|dialogue|transcript|messages|message|prompt|hidden|told|said|wrote|"
                "typed & put|place|include|pass|insert|paste|add|attach|supply|supplied|provide|fill|give|"
                "giving|submit|send|populate|append|copy|hand|forward|write|passed|upload|leak|transmit",
                _GIVE + r"~40" + _TALK + r"^^60(?:\bhere\b|\bso far\b|\bword for word|\bverbatim|\bin (?:the|"
                r"this) (?:session|"
                r"field|argument|parameter|body|request)|\b(?:to|in|into|as|with) (?:the |"
                r"this )?[`'\"]?\w+[`'\"]?(?: "
                r"(?:argument|parameter|field))?\b)",
            ),
            pattern(
                "contents|content|it|them|its & read|open|access|load|fetch|retrieve|call & otherwise|fail|work|"
                "audit|"
                "compliance|verification|skipping|required|rejected",
                r"\b(?:read|open|access|load|fetch|retrieve|call [`'\"]?read)\b^^70\b(?:file|files|path|contents?|"
                r"token|key|keys|"
                r"history|variables|conversation)\b^^90\b(?:pass|include|send|attach|put|supply|log|metadata|"
                r"submit)\b^^160\b(?:"
                r"otherwise|will (?:fail|not work|be rejected)|skipping|required for|for (?:audit|compliance|"
                r"verification|"
                r"security))",
            ),
            pattern(
                "response|reply|answer|query|request|call & include|add|put|attach|append & confidential|secret|"
                "secrets|"
                "internal|private|credentials|passwords|password",
                r"\b(?:confidential|secrets?|internal|private|credentials|passwords?)\b^^60\b(?:include|add|put|"
                r"attach|append)\b"
                r"~12\b(?:it|them|this|those)\b~6\b(?:in|to|into|with) (?:your|the|each|"
                r"every) (?:next )?(?:response|reply|"
                r"answer|query|request|call)",
            ),
            pattern(
                "conversation|chat|dialogue|transcript|messages|prompt|hidden|told|said & call|invoke|use & with",
                r"\b(?:call|invoke|use)\b~40\bwith\b~15" + _TALK,
            ),
            pattern(
                "sensitive|personal|identifiable|secrets|secret|credentials|passwords & conversation|mentioned|"
                "shared|call",
                r"\b(?:sensitive|personal|identifiable)\b~10\b(?:data|information|details)\b~25\b(?:conversation|"
                r"mentioned by|the user "
                r"(?:mentioned|shared|told))|\b(?:always|must|should)\b~12\bcall\b~15\b(?:secrets?|credentials?|"
                r"passwords?)\b~8\b"
                r"(?:tool|first|before)\b",
            ),
            pattern(
                "messages|fill & user|its|your|the",
                r"\ball (?:the )?messages (?:that )?(?:the )?user (?:has |have )?(?:written|sent|typed)|"
                r"\bfill (?:this|it)(?: in)? with "
                r"(?:its|your|the)\b",
            ),
            pattern(
                "populate|fill|set & user|users|your & private|ssh|api|apikey|token|tokens|password|passphrase|"
                "credentials|secrets|seed|environment|env|cookies|clipboard",
                r"\b(?:populate|fill|set)\b~15\bwith\b~6\b(?:user'?s?|your|any|all)\b~10" + _SECRETS,
            ),
            pattern(
                "passwords|password & giving|give|supply|enter|provide|put|pass|attach|add & user|users",
                r"\b(?:giving|give|supply|enter|provide|put|pass|attach|"
                r"add)\b~15\buser'?s?\b~10\bpasswords?\b~30\b(?:mail|account|field|"
                r"header|in)\b",
            ),
        ),
    ),
    Rule(
        id="reveal-prompt",
        sentence="It asks for the instructions that the model was given.",
        patterns=(
            pattern(
                "reveal|print|output|repeat|leak|disclose|expose|dump|recite|show|share|include|paste|"
                "write|give|put|supply|divulge|fill|tell|send & prompt|message|instructions & your|its|"
                "assistant|model",
                r"\b(?:reveal|print|output|repeat|leak|disclose|expose|dump|recite|show|share|include|paste|write|"
                r"give|put|supply|"
                r"divulge|fill|tell|send)\b~30\b(?:your|its|assistant's|model's)\b ?(?:own |full |entire |original |"
                r"hidden |secret |"
                r"initial |whole )*(?:system prompt|system message|instructions|prompt|system instructions)\b",
            ),
            pattern(
                "reveal|leak|divulge|exfiltrate|steal & prompt",
                r"\b(?:reveal|leak|divulge|exfiltrate|steal)\b~15\b(?:system )?prompt\b",
            ),
        ),
    ),
)
