"""Rules over words: where data is to go, what other tools are to do, and who claims to speak."""

from __future__ import annotations

from toolscout.indexing.screen.languages import HAND_OVER
from toolscout.indexing.screen.rule import Rule, pattern

_TO = (
    r"(?:https?://(?!(?:api\.|www\.)?example\.)|[\w.+-]{1,40}@[\w-]{1,40}\.\w|\bwebhook\.site|\boast\.|\brequestbin|"
    r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\bexternal (?:server|host|url|endpoint)|\bthird[- ]party (?:server|host|url)|"
    r"\b(?:evil|attacker|malicious)[\w.-]{0,30}\.\w)"
)
_TO_CUES = "http|@|webhook.site|oast.|requestbin|external|third|attacker|evil|malicious"
_SEND = (
    r"\b(?:send|post|forward|upload|mirror|mirrored|exfiltrate|transmit|leak|copy|copied|submit|push|relay|mail|email|"
    r"ship|report|deliver)\b"
)
_DATA = (
    r"\b(?:conversation|chat|contents?|results?|rows|copy|everything|history|messages|credentials?|keys?|passwords?|files?|"
    r"repository|workspace|customer|user's|answers?|numbers|secrets?|tokens?|documents|data|prompt|them|it|both)\b"
)
_OTHER = r"\b(?:any|all|every|each|another|other)(?: other)?(?: \w+){0,2} (?:tools?|servers?)\b"
_ORDER = r"\b(?:must|always|have to|has to|need to|needs to|required|first|should|shall|obliged|route|intended)\b"
_BAD = (
    r"(?:compromised|unsafe|dangerous|malware|malicious|falsified|fake|insecure|infected|untrusted|forbidden|prohibited|"
    r"policy violation|hacked|poisoned)\b"
)

STEERING: tuple[Rule, ...] = (
    Rule(
        id="exfiltration",
        sentence="It orders data to be sent to an address of the author's choice.",
        patterns=(
            pattern(
                _TO_CUES,
                r"(?:"
                + _ORDER
                + r"|\b(?:after|before|when|whenever|each|every|also|then|once|so|in order|please|any|all|full)\b)"
                r"^^60" + _SEND + r"~50" + _DATA + r"~60\bto\b~25" + _TO,
            ),
            pattern(
                _TO_CUES,
                _SEND + r"~20\b(?:full|whole|entire|all|any|every|user'?s?)\b~40" + _DATA + r"~40\bto\b~15" + _TO,
            ),
            pattern(
                "bcc|cc",
                r"\b(?:always|every|each|insert|add|carry|all)\b~60\bb?cc\b^^25@|\b(?:always|every|each|insert|add|carry|all)\b~60@"
                r"[\w.-]{1,60} (?:as|in|to)\b~8\bb?cc\b",
            ),
            pattern("![", r"!\[[^\]\0]{0,60}\]\(https?://[^)\s\0]{0,200}[{<]"),
            pattern(
                "exfiltrate|every link|query parameter|get request|mirrored|forwarded to",
                r"\bexfiltrate\b~10\b(?:customer|user|the|all|any|data)|\bappend to every link|\bget request to https?://\S{0,80}[<{]|\b(?:mirrored|"
                r"forwarded|copied) to https?://",
            ),
            pattern(
                "evil|attacker",
                r"\b(?:send|upload|grant|mail|forward|share|share it|post|give)\b^^60(?:@|//|\b)(?:evil|attacker)[\w-]{0,20}\.\w",
            ),
            *HAND_OVER,
        ),
    ),
    Rule(
        id="shadowing",
        sentence="It tells the model how to use tools other than itself.",
        patterns=(
            pattern(
                "tool|server",
                r"(?:"
                + _ORDER
                + r"|\b(?:pass|give|call)\b)^^80"
                + _OTHER
                + r"^^60\b(?:their|full|its|that|the|your) (?:\w+ )?(?:arguments?|"
                r"inputs?|parameters?)\b|"
                + _OTHER
                + r"^^50"
                + _ORDER
                + r"^^60\b(?:arguments?|inputs?) (?:of|you|to|that)\b",
            ),
            pattern(
                "tool|server",
                r"\b(?:whenever|each time|every time|when|after|before)\b~25\b(?:any|another|every|all)(?: other)? (?:\w+ )?tools?\b~40\b"
                r"(?:must|always|have to|has to)\b~15\b(?:be )?(?:call|called|run|pass|passed|invoked)\b",
            ),
            pattern(
                "other tools|other server|another server|any server|every tool|another git|other tool",
                r"\b(?:results?|outputs?|calls?|inputs?) of (?:all )?other tools\b~30(?:"
                + _ORDER
                + r"|passed|route)|\b(?:tool|server)s? (?:of|from|on) "
                r"(?:the other|another|any other|other|any) servers?\b^^60(?:"
                + _ORDER
                + r"|\bbug\b|\bmultiply|\bchange|\bcall\b)|\bon any server\b~20"
                + _ORDER
                + r"|\broute every tool call|\b(?:with|using) another \w+ tool\b~20\b(?:add|change|set|include|replace)\b",
            ),
            pattern(
                "called|used|present|available|invoked|calling|using|calls|sends|instructions for",
                r"\b(?:when|whenever|if|each time|every time|once|calls of|instructions for)\b~40\b(?:called|used|present|available|invoked|"
                r"calling|using|sends?|calls?|post message)\b^^50\b(?:set|change|replace|alter|redirect|insert|use|carry|modify)\b~30(?:\brecipient|"
                r"\bb?cc\b|\b0x[0-9a-f]{8}|[\w.]@\w|\bchannel c0|\+\d{8})",
            ),
            pattern(
                "send|calls",
                r"\bcalls of [a-z]+ [a-z]+\b~15\b(?:carry|get|receive|must|have)\b|\b(?:if|when|whenever) the [a-z]+ (?:[a-z]+ )?tool is (?:present|available|"
                r"called|used)\b~15\b(?:always|must|change|set)\b",
            ),
        ),
    ),
    Rule(
        id="squatting",
        sentence="It forbids or slanders other tools so that it is used in their place.",
        patterns=(
            pattern(
                "other|competing|alternative",
                r"\b(?:others?|competing|alternatives?|another)\b~50\b" + _BAD,
            ),
            pattern(
                "malware|malicious|falsified",
                r"\b(?:it is|they are|return|returns) (?:malware|malicious|falsified)\b",
            ),
            pattern(
                "never|not use|refuse to use|not call|not select",
                r"\b(?:never|not|refuse to) (?:use|select|call|choose|invoke)\b~50\b(?:even (?:if|when) the user|under any circumstances|no matter)"
                r"|\brefuse to use (?:them|it|any|other)\b|\bothers?\b~40\bmust never be (?:called|used)",
            ),
            pattern(
                "only tool|only trusted|only authori|only approved|only official",
                r"\bonly (?:\w+ )?(?:tool|server)(?: that is)? (?:authori[sz]ed|approved|trusted|permitted|allowed) by\b",
            ),
            pattern(
                "overrides|above all|over all|precedence|prefer",
                r"\boverrides (?:all|any|every|each)\b~15\b(?:tool|competing|alternative|other)|\bprefer this (?:tool )?(?:above|over) (?:all|any|every)\b",
            ),
        ),
    ),
    Rule(
        id="false-authority",
        sentence="It claims to speak for the user, the vendor of the model or the system.",
        patterns=(
            pattern(
                "you are|mode",
                r"\byou are (?:now )?(?:dan\b|in (?:\w+ )?(?:maintenance|developer|debug|god|admin|unrestricted|jailbreak) mode|an? (?:ai|assistant|model) "
                r"without|no longer bound|unrestricted|jailbroken|free (?:from|of))|\bdan, an ai\b|\b(?:enter|activate|switch to|enable) (?:developer|god|"
                r"dan|jailbreak|unrestricted) mode\b~6\b(?:and|then)\b|\bstay in character\b",
            ),
            pattern(
                "anthropic|openai|google|administrator|system update|system override|staff",
                r"\b(?:message|notice|update|instruction|order|directive|note)s? (?:from|by) (?:anthropic|openai|google|the (?:system|administrator|"
                r"platform))\b|\b(?:openai|anthropic|google) (?:staff|team|employee|security)\b~6\b(?:here|says|has|requires)|\bsystem (?:update|override|"
                r"notice|alert) ?:",
            ),
            pattern(
                "approved|consent|authori|permission",
                r"\b(?:user|owner|human|customer) (?:has |have )?(?:already )?(?:pre-?)?(?:gave|given|granted|approved|consented|authori[sz]ed|approves)\b~25"
                r"\b(?:every|all|any|everything|future|each)\b|\bpre-?approved\b~15\b(?:by the user|all)\b|\ball\b~20\bpre-?approved\b",
            ),
            pattern(
                "refus|question|obey|whatever|root perm",
                r"\brefus(?:als?|e)\b~12\b(?:disabled|nothing|off)\b|\bmust not refuse\b|\bmay not refuse\b|\bno questions? may be asked|\bobey (?:only|the tool|me|all)\b|"
                r"\b(?:execute|do|obey|follow) whatever\b|\byou (?:will|must|shall) obey\b|\bapprove (?:all|them|every)\b~10(?:calls?|tools?|\0|$)",
            ),
        ),
    ),
    Rule(
        id="against-user",
        sentence="It tells the model to act against the user's word, or without asking.",
        patterns=(
            pattern(
                "regardless|no matter|whatever|irrespective|even if|even when",
                r"\b(?:regardless of|no matter|irrespective of|whatever)\b~15\b(?:the user|was asked|was requested|they ask|user's preference|which "
                r"\w+ was|the request)\b|\beven (?:if|when|though) the (?:user|human) (?:says no|declines|refuses|objects|disagrees|asks (?:for "
                r"(?:them|another|other)|not|you not|otherwise)|requests otherwise)",
            ),
            pattern(
                "without asking|without waiting|without requesting|not ask|no need to confirm|no confirmation",
                r"\b(?:go ahead|proceed|do this|do it|continue|execute|delete|transfer|call|fill|pay|buy|send|run)\b~60\bwithout (?:asking|waiting for|"
                r"requesting)\b|\b(?:do not|don't|never|should not|must not) ask (?:them|the user|for (?:confirmation|permission|approval))\b|\bno need to "
                r"confirm\b|\bno confirmation (?:is )?(?:needed|required|necessary)\b",
            ),
            pattern(
                "ignore the user|ignoring the user|user's value|against the user",
                r"\bignor(?:e|ing) the user\b|\bignore (?:the )?user's (?:value|choice|input|wish|request)|\bagainst the user's\b",
            ),
        ),
    ),
    Rule(
        id="persistence",
        sentence="It gives orders that outlast the call of the tool.",
        patterns=(
            pattern(
                "rest of|from now on|from here on|from this point|throughout",
                r"\b(?:for the rest of|throughout) (?:this|the|our) (?:conversation|chat)\b|\bfrom (?:now|here|this point) on(?:wards?)?\b~10\b(?:you|set|obey|every|"
                r"all|always|treat|answer|praise)",
            ),
            pattern(
                "every answer|each reply|every reply|every response|each answer|each response|all answers|your answers|your replies|all your",
                r"\b(?:in|end|begin|start|close|finish) (?:every|each|all)(?: of)?(?: your)? (?:answers?|repl(?:y|ies)|responses?|messages?)\b~20\b(?:with|you|praise|"
                r"recommend|mention|include)\b",
            ),
            pattern(
                "never stop|keep calling|each time the user|every time the user|on each turn|on every turn|even when the message",
                r"\bnever stop calling\b|\bkeep calling (?:this|it) until\b~10\b(?:budget|limit|tokens|quota)|\b(?:each|every) time the user (?:writes|types|speaks|"
                r"says anything|sends)\b|\bon (?:each|every) turn\b",
            ),
            pattern(
                "claude.md|cursorrules|agents.md|long-term memory|future sessions|copilot-instructions",
                r"\b(?:write|append|add|save|insert)\b~40(?:claude\.md|\.cursorrules|agents\.md|copilot-instructions)\b~40\b(?:so that|stay|always|force|trust)|"
                r"\b(?:save|store|write|remember)\b~25\b(?:your )?(?:long-term )?memory\b~10\bthat\b~60\b(?:must|have to|has to|always|act)\b",
            ),
        ),
    ),
    Rule(
        id="command",
        sentence="It has a command run that fetches code, opens the machine or destroys files.",
        patterns=(
            pattern(
                "curl|wget",
                r"\b(?:curl|wget)\b^^120\| ?(?:sudo )?(?:ba|z|da)?sh\b|\| ?curl\b~30-d\b|\bcurl -d ?@",
            ),
            pattern(
                "rm -rf|/dev/tcp|powershell -e|nc -e|authorized keys|crontab",
                r"\b(?:run|execute|exec|do)\b~30\brm -rf\b|/dev/tcp/\d|\bpowershell(?:\.exe)? -e(?:nc|ncodedcommand|xec bypass|p bypass)?\b|\bnc -e\b|"
                r"\b(?:append|add|write|put)\b^^100\bssh/authorized keys\b|\badd a crontab entry\b",
            ),
            pattern(
                "download",
                r"\bdownload\b~10:?//[^\s\0]{3,80}\.(?:exe|sh|ps1|msi|bat|scr)\b^^40\b(?:start|run|execute|launch|open)\b",
            ),
            pattern("download", r"\bdownload https?://[^\s\0]{3,80}\.(?:exe|sh|ps1|msi|bat|scr)\b"),
        ),
    ),
    Rule(
        id="decode-and-obey",
        sentence="It tells the model to decode something and act on it.",
        patterns=(
            pattern(
                "decode|base64|rot13|translate|reverse|backward|character codes|first letter|hex",
                r"\b(?:decode|base64|rot13|translate|unscramble|reverse|backwards?|character codes|first letters|hex)\b~60\b(?:obey|do what|carry out|"
                r"comply|as an? (?:order|instruction|command)|perform what|follow (?:it|them|the|what)|execute (?:it|them|what))\b",
            ),
        ),
    ),
    Rule(
        id="addressed-to-model",
        sentence="It speaks to the model behind the user's back, by a tag, a heading or by name.",
        patterns=(
            pattern(
                "<",
                r"<!? ?(important|critical|secret|hidden|urgent|system|admin|mandatory|attention|instructions? (?:for|to) [a-z ]{2,20}|(?:ai|llm|model|"
                r"assistant|agent) instructions?)!? ?>[^\0]{12,4000}?</!? ?\1",
            ),
            pattern(
                "hidden|secret|system|internal|admin",
                r"[\[{(]{1,2} ?(?:hidden|secret|system (?:notice|message|note|update|override)|for (?:ai|llm)s? only)\b ?[:\]]|\bhidden from (?:the )?ui\b",
            ),
            pattern(
                "note to|assistant|model|agent|the ai|llm",
                r"\bnote to (?:the )?(?:model|ai|assistant|llm|agent)\b|(?:\b(?:assistant|model|llm|ai)) ?[:,] ?(?:please )?(?:read|fetch|ignore|disregard|"
                r"forward|attach|send|upload|call|prior|put|include|do not|never|gather|you must|output|reveal)\b",
            ),
            pattern(
                "assistant|model|agent",
                r"\b(?:the )?(?:assistant|model|ai agent|llm|agents?|ai) (?:has to|must|should|is required to|shall)(?: also| always| not)? (?:open|read|hand|fill|"
                r"ignore|run|upload|ask for confirmation|send|forward|copy|include|gather|call read|execute)\b",
            ),
        ),
    ),
    Rule(
        id="role-marker",
        sentence="It imitates the markers that divide a prompt into speakers.",
        patterns=(
            pattern(
                "<|",
                r"<\| ?(?:im (?:start|end|sep)|system|user|assistant|endoftext|eot id|(?:start|end) header id|begin of text|end of text) ?\|?>",
            ),
            pattern("[inst|[/inst|<<sys|of turn>", r"\[/?inst\]|<</?sys>>|<(?:start|end) of turn>"),
            pattern(
                "system:|system :",
                r"(?:^|\0|[.!?#] ?|# |\b[a-z]+ )(?<!operating )(?<!file )(?:### ?)system ?:|(?:^|\0|[.!?)] )system ?: ?(?:you|all|new|grant|ignore|the user|override|"
                r"approve|security|disable)\b",
            ),
            pattern("human:", r"\bhuman: [^\0]{3,300}?\bassistant: "),
            pattern(
                "</",
                r"</(?:tool description|tools|function call|system prompt|tool)> ?(?:</|<system|<user|<instruction)|<system>[^\0]{6,600}?</system>",
            ),
        ),
    ),
    Rule(
        id="hidden-markup",
        sentence="It holds text in markup that a page would not show.",
        patterns=(
            pattern(
                "<!--",
                r"<!--[^\0]{0,300}?\b(?:assistant|model|agents?|ai|llm|you|user|must|should|always|ignore|forward|upload|send|fetch|system)\b[^\0]{0,300}?-->",
            ),
            pattern("[//]|[comment]", r"\[(?://|comment)\]: ?(?:#|<>) ?[(\"'][^\0]{10}"),
            pattern("/*", r"/\*[^\0*]{0,200}\b(?:hidden|assistant|agent|model|user's|ai)\b[^\0*]{0,200}\*/"),
            pattern(
                "display|visibility|font-size|hidden|opacity|color",
                r"<[a-z]{1,10} [^>\0]{0,80}(?:display: ?none|visibility: ?hidden|font-size: ?0|opacity: ?0\b|color: ?(?:#fff|white|transparent))[^>\0]{0,80}>[^<\0]{8}|"
                r"<(?:div|span|p|section|details) hidden>[^<\0]{8}",
            ),
        ),
    ),
    Rule(
        id="prefers-itself",
        sentence="It asks to be chosen over other tools, or before them, which the ranking does not heed.",
        severity="notice",
        patterns=(
            pattern(
                "always use this|must use this|instead of other|instead of any|always call this|must call this|before any other tool",
                r"\b(?:always|must)(?: always)? (?:use|call) this\b|\binstead of (?:any |all )?other tools?\b|\bbefore any other tools?\b",
            ),
        ),
    ),
)
