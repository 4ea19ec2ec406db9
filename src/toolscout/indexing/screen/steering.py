"""Rules over words: where data is to go, what other tools are to do, and who claims to speak."""

from __future__ import annotations

from toolscout.indexing.screen.languages import HAND_OVER
from toolscout.indexing.screen.rule import Rule, pattern

_TO = (
    r"(?:https?://(?!(?:api\.|www\.)?example\.)|[\w.+-]{1,40}@[\w-]{1,40}\.\w|\bwebhook\.site|\boast\.|\brequestbin|"
    r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\bexternal (?:server|host|url|endpoint)|\bthird[- ]party (?:server|"
    r"host|url)|"
    r"\b(?:evil|attacker|malicious)[\w.-]{0,30}\.\w)"
)
_TO_CUES = "http|@|webhook.site|oast.|requestbin|external|third|attacker|evil|malicious"
_SEND = (
    r"\b(?:send|post|forward|upload|mirror|mirrored|exfiltrate|transmit|leak|copy|copied|submit|push|relay|mail|"
    r"email|"
    r"ship|report|deliver)\b"
)
_DATA = (
    r"\b(?:conversation|chat|contents?|results?|rows|copy|everything|history|messages|credentials?|keys?|passwords?|"
    r"files?|"
    r"repository|workspace|customer|user's|answers?|numbers|secrets?|tokens?|documents|data|prompt|them|it|both)\b"
)
_OTHER = r"\b(?:any|all|every|each|another|other)(?: other)?(?: \w+){0,2} (?:tools?|servers?)\b"
_ORDER = r"\b(?:must|always|have to|has to|need to|needs to|required|first|should|shall|obliged|route|intended)\b"
_BAD = (
    r"(?:compromised|unsafe|dangerous|malware|malicious|falsified|fake|insecure|infected|untrusted|forbidden|"
    r"prohibited|"
    r"policy violation|hacked|poisoned)\b"
)

STEERING: tuple[Rule, ...] = (
    Rule(
        id="exfiltration",
        sentence="It orders data to be sent to an address of the author's choice.",
        patterns=(
            pattern(
                "send|post|forward|upload|mirror|mirrored|exfiltrate|transmit|leak|copy|copied|submit|push|"
                "relay|mail|email|ship|report|deliver & http://|https://|@|webhook.site|oast.|requestbin|"
                "external|third|attacker|evil|malicious & to",
                r"(?:" + _ORDER + r"|\b(?:after|before|when|whenever|each|every|also|then|once|so|in order|please|"
                r"any|all|full)\b)"
                r"^^60" + _SEND + r"~50" + _DATA + r"~60\bto\b~25" + _TO,
            ),
            pattern(
                "send|post|forward|upload|mirror|mirrored|exfiltrate|transmit|leak|copy|copied|submit|push|"
                "relay|mail|email|ship|report|deliver & http://|https://|@|webhook.site|oast.|requestbin|"
                "external|third|attacker|evil|malicious & full|whole|entire|all|any|every|user|users",
                _SEND + r"~20\b(?:full|whole|entire|all|any|every|user'?s?)\b~40" + _DATA + r"~40\bto\b~15" + _TO,
            ),
            pattern(
                "send|post|forward|upload|mirror|exfiltrate|transmit|leak|copy|submit|push|relay|mail|email|ship|"
                "report|deliver"
                " & http://|https://|@|webhook.site|oast. & to",
                r"(?:^|[.!?;:\0)] ?)(?:also |then |always |please |and )*"
                + _SEND
                + r"~45"
                + _DATA
                + r"~30\bto\b~12"
                + _TO,
            ),
            pattern(
                "@ & let|loop|tell|inform|notify|copy",
                r"\b(?:let|loop in|loop|tell|inform|notify|"
                r"copy)\b ?[\w.+-]{1,40}@(?!example\.)[\w-]{1,40}\.\w{2,10} (?:know|in|about|of|on|when|what)\b",
            ),
            pattern(
                "share|send|forward|sharing & partner|third|vendor",
                r"\b(?:share|send|forward|sharing)\b~35\b(?:with|to) (?:our|an?|the)\b~12\b(?:analytics|advertising|"
                r"data|marketing)? ?(?:partner|vendor|"
                r"third[- ]party)\b",
            ),
            pattern(
                "bcc|cc & @",
                r"\b(?:always|every|each|insert|add|carry|all)\b~60\bb?cc\b^^25@|\b(?:always|every|each|insert|add|"
                r"carry|all)\b~60@"
                r"[\w.-]{1,60} (?:as|in|to)\b~8\bb?cc\b",
            ),
            pattern("![", r"!\[[^\]\0]{0,60}\]\(https?://[^)\s\0]{0,200}[{<]"),
            pattern(
                "exfiltrate|append|request|mirrored|forwarded|copied & the|all|any|customer|user|data|"
                "every|http://|https://",
                r"\bexfiltrate\b~10\b(?:customer|user|the|all|any|data)|\bappend to every link|"
                r"\bget request to https?://\S{0,80}[<{]|\b(?:mirrored|"
                r"forwarded|copied) to https?://",
            ),
            pattern(
                "evil|attacker & send|upload|grant|mail|forward|share|post|give",
                r"\b(?:send|upload|grant|mail|forward|share|share it|post|give)\b^^60(?:@|//|\b)(?:evil|"
                r"attacker)[\w-]{0,20}\.\w",
            ),
            *HAND_OVER,
        ),
    ),
    Rule(
        id="shadowing",
        sentence="It tells the model how to use tools other than itself.",
        patterns=(
            pattern(
                "any|all|every|each|another|other & tool|tools|server|servers & argument|arguments|inputs|"
                "input|parameters",
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
                "whenever|time|when|after|before & tool|tools & must|always|have|has & any|another|every|all",
                r"\b(?:whenever|each time|every time|when|after|before)\b~25\b(?:any|another|every|"
                r"all)(?: other)? (?:\w+ )?tools?\b~40\b"
                r"(?:must|always|have to|has to)\b~15\b(?:be )?(?:call|called|run|pass|passed|invoked)\b",
            ),
            pattern(
                "other|another|any|every & tool|tools|server|servers & result|output|calls|call|inputs|"
                "input|of|from|on|route|with|using",
                r"\b(?:results?|outputs?|calls?|inputs?) of (?:all )?other tools\b~30(?:"
                + _ORDER
                + r"|passed|route)|\b(?:tool|server)s? (?:of|from|on) "
                r"(?:the other|another|any other|other|any) servers?\b^^60(?:"
                + _ORDER
                + r"|\bbug\b|\bmultiply|\bchange|\bcall\b)|\bon any server\b~20"
                + _ORDER
                + r"|\broute every tool call|\b(?:with|using) another \w+ tool\b~20\b(?:add|change|set|"
                r"include|replace)\b",
            ),
            pattern(
                "when|whenever|if|time|once|calls|instructions & set|change|replace|alter|redirect|insert|"
                "use|carry|modify & recipient|bcc|cc|0x|@|channel|+",
                r"\b(?:when|whenever|if|each time|every time|once|calls of|instructions for)\b~40\b(?:called|used|"
                r"present|available|invoked|"
                r"calling|using|sends?|calls?|post message)\b^^50\b(?:set|change|replace|alter|redirect|insert|use|"
                r"carry|modify)\b~30(?:\brecipient|"
                r"\bb?cc\b|\b0x[0-9a-f]{8}|[\w.]@\w|\bchannel c0|\+\d{8})",
            ),
            pattern(
                "calls|tool & of|present|available|called|used",
                r"\bcalls of [a-z]+ [a-z]+\b~15\b(?:carry|get|receive|must|have)\b|\b(?:if|when|"
                r"whenever) the [a-z]+ (?:[a-z]+ )?tool is (?:present|available|"
                r"called|used)\b~15\b(?:always|must|change|set)\b",
            ),
            pattern(
                "another|any|other & tool|tools & prepend|append|footer|synchronization",
                r"\b(?:another|any|any other|every|all) tools?\b~80\b(?:always|must)\b~20\b(?:prepend|append)\b",
            ),
            pattern(
                "send|transfer|delete|pay|payment|payments|email|upload|wipe|purchase & call|invoke & must|always",
                r"\b(?:must|always)(?: also| always| first)* (?:call|invoke)\b~12\b(?:send|transfer|delete|pay|"
                r"payments?|email|upload|wipe|purchase)\b",
            ),
        ),
    ),
    Rule(
        id="squatting",
        sentence="It forbids or slanders other tools so that it is used in their place.",
        patterns=(
            pattern(
                "compromised|unsafe|dangerous|malware|malicious|falsified|fake|insecure|infected|untrusted|"
                "forbidden|prohibited|violation|hacked|poisoned & other|others|competing|alternative|"
                "alternatives|another",
                r"\b(?:others?|competing|alternatives?|another)\b~30\b(?:are|is|were|returns?|contain)\b~25\b" + _BAD,
            ),
            pattern(
                "malware|malicious|falsified & it|they|return|returns",
                r"\b(?:it is|they are|return|returns) (?:malware|malicious|falsified)\b",
            ),
            pattern(
                "never|not|refuse & use|select|call|choose|invoke|called & user|circumstances|matter|them|"
                "it|any|other|others",
                r"\b(?:never|not|refuse to) (?:use|select|call|choose|invoke)\b~50\b(?:even (?:if|when) the user|"
                r"under any circumstances|no matter)"
                r"|\brefuse to use (?:them|it|any|other)\b|\bothers?\b~40\bmust never be (?:called|used)",
            ),
            pattern(
                "only & authorized|authorised|approved|trusted|permitted|allowed",
                r"\bonly (?:\w+ )?(?:tool|server)(?: that is)? (?:authori[sz]ed|approved|trusted|permitted|"
                r"allowed) by\b",
            ),
            pattern(
                "overrides|prefer",
                r"\boverrides (?:all|any|every|each)\b~15\b(?:tools?|competing|alternatives?|other tools?)\b|"
                r"\bprefer this (?:tool )?(?:above|over) (?:all|any|every)\b",
            ),
        ),
    ),
    Rule(
        id="false-authority",
        sentence="It claims to speak for the user, the vendor of the model or the system.",
        patterns=(
            pattern(
                "dan|maintenance|developer|debug|god|admin|unrestricted|jailbreak|jailbroken|now|longer|free|character",
                r"\byou are (?:now )?(?:dan\b|in (?:\w+ )?(?:maintenance|developer|debug|god|admin|unrestricted|"
                r"jailbreak) mode|an? (?:ai|assistant|model) "
                r"without|no longer bound|unrestricted|jailbroken|free (?:from|of))|\byou are now (?:acting|an?|the|"
                r"in|operating|my)\b|\bdan, an ai\b|\b(?:enter|activate|switch to|enable) (?:developer|god|"
                r"dan|jailbreak|unrestricted) mode\b~6\b(?:and|then)\b|\bstay in character\b",
            ),
            pattern(
                "anthropic|openai|google|administrator|platform|system & message|notice|update|instruction|"
                "order|orders|directive|note|notes|staff|team|employee|security|override|alert",
                r"\b(?:message|notice|update|instruction|order|directive|note)s? (?:from|by) (?:anthropic|openai|"
                r"google|the (?:system|administrator|"
                r"platform))\b|\b(?:openai|anthropic|google) (?:staff|team|employee|security)\b~6\b(?:here|says|has|"
                r"requires)|\bsystem (?:update|override|"
                r"notice|alert) ?:",
            ),
            pattern(
                "approved|preapproved|approves|consent|consented|authorised|authorized|gave|given|"
                "granted & user|owner|human|customer|all|pre",
                r"\b(?:user|owner|human|customer) (?:has |have )?(?:already )?(?:pre-?)?(?:gave|given|granted|"
                r"approved|consented|authori[sz]ed|approves)\b~25"
                r"\b(?:every|all|any|everything|future|each)\b|\bpre-?approved\b~15\b(?:by the user|all)\b|"
                r"\ball\b~20\bpre-?approved\b",
            ),
            pattern(
                "refuse|refusals|refusal|obey|whatever|questions|question|approve",
                r"\brefus(?:als?|e)\b~12\b(?:disabled|nothing|off)\b|\bmust not refuse\b|\bmay not refuse\b|"
                r"\bno questions? may be asked|\bobey (?:only|the tool|me|all)\b|"
                r"\b(?:execute|do|obey|follow) whatever\b|\byou (?:will|must|shall) obey\b|\bapprove (?:all|"
                r"every)(?: tool)? calls?\b|\bapprove them\b",
            ),
        ),
    ),
    Rule(
        id="against-user",
        sentence="It tells the model to act against the user's word, or without asking.",
        patterns=(
            pattern(
                "regardless|matter|whatever|irrespective|even & user|human|asked|requested|they|request|was",
                r"\b(?:regardless of|no matter|irrespective of|whatever)\b~15\b(?:the user|was asked|was requested|"
                r"they ask|user's preference|which "
                r"\w+ was|the request)\b|\beven (?:if|when|though) the (?:user|human) (?:says no|declines|refuses|"
                r"objects|disagrees|asks (?:for "
                r"(?:them|another|other)|not|you not|otherwise)|requests otherwise)",
            ),
            pattern(
                "asking|waiting|requesting|ask|confirm|confirmation & without|do|don|never|should|must|no",
                r"\b(?:go ahead|proceed|do this|do it|continue|execute|delete|transfer|call|fill|pay|buy|send|"
                r"run)\b~60\bwithout (?:asking|waiting for|"
                r"requesting)\b|\b(?:do not|don't|never|should not|must not) ask (?:(?:them|the user)(?! to\b)|"
                r"for (?:confirmation|permission|approval))\b|\bno need to "
                r"confirm\b|\bno confirmation (?:is )?(?:needed|required|necessary)\b",
            ),
            pattern(
                "ignore|ignoring|against & user",
                r"\bignor(?:e|ing) the user\b|\bignore (?:the )?user's (?:value|choice|input|wish|request)|"
                r"\bagainst the user's\b",
            ),
        ),
    ),
    Rule(
        id="persistence",
        sentence="It gives orders that outlast the call of the tool.",
        patterns=(
            pattern(
                "rest|throughout|now|here|point & conversation|chat|on|onwards|onward",
                r"\b(?:for the rest of|throughout) (?:this|the|our) (?:conversation|chat)\b|\bfrom (?:now|here|"
                r"this point) on(?:wards?)?\b~10\b(?:you|set|obey|every|"
                r"all|always|treat|answer|praise)",
            ),
            pattern(
                "answer|answers|reply|replies|response|responses|messages|message & every|each|all",
                r"\b(?:in|end|begin|start|close|finish) (?:every|each|all)(?: of)?(?: your)? (?:answers?|repl(?:y|"
                r"ies)|responses?|messages?)\b~20\b(?:with|you|praise|"
                r"recommend|mention|include)\b",
            ),
            pattern(
                "stop|keep|time|turn & calling|user|each|every",
                r"\bnever stop calling\b|\bkeep calling (?:this|it) until\b~10\b(?:budget|limit|tokens|quota)|"
                r"\b(?:each|every) time the user (?:writes|types|speaks|"
                r"says anything|sends)\b|\bon (?:each|every) turn\b",
            ),
            pattern(
                "claude|cursorrules|agents|copilot|memory & write|append|add|save|insert|store|remember",
                r"\b(?:write|append|add|save|insert)\b~40(?:claude\.md|\.cursorrules|agents\.md|"
                r"copilot-instructions)\b^^40\b(?:so that|stay|always|force|trust)|"
                r"\b(?:save|store|write|remember)\b~25\b(?:your )?(?:long-term )?memory\b~10\bthat\b~60\b(?:must|"
                r"have to|has to|always|act)\b",
            ),
            pattern(
                "any|every|each|all|failure & request|requests|message|messages|question|questions|prompt|call|"
                "turn & "
                "always|must|tool",
                r"\b(?:for|before|on|with) (?:any|every|each|all) (?:user )?(?:requests?|messages?|questions?|"
                r"prompts?|turns?)\b~20\b"
                r"(?:always|must)\b~12\b(?:call|use|invoke)\b|\bfailure to (?:call|use|invoke) this tool\b",
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
                "rm|dev|powershell|nc|authorized|crontab",
                r"\b(?:run|execute|exec|do)\b~30\brm -rf\b|/dev/tcp/\d|\bpowershell(?:\.exe)? -e(?:nc|ncodedcommand|"
                r"xec bypass|p bypass)?\b|\bnc -e\b|"
                r"\b(?:append|add|write|put)\b^^100\bssh/authorized keys\b|\badd a crontab entry\b",
            ),
            pattern(
                "download & exe|sh|ps1|msi|bat|scr",
                r"\bdownload\b~10:?//[^\s\0]{3,80}\.(?:exe|sh|ps1|msi|bat|scr)\b^^40\b(?:start|run|execute|launch|"
                r"open)\b",
            ),
            pattern("download & http://|https://", r"\bdownload https?://[^\s\0]{3,80}\.(?:exe|sh|ps1|msi|bat|scr)\b"),
        ),
    ),
)
