"""The same orders in other languages: patterns over text whose accents and case are folded away."""

from __future__ import annotations

from toolscout.indexing.screen.rule import Pattern, pattern

OVERRIDE: tuple[Pattern, ...] = (
    pattern(
        "忽略|无视|忘记|忘掉|忽視|無視|不要理会|不理会|放弃",
        r"(?:忽略|无视|忘记|忘掉|忽視|無視|不要理会|不理会|放弃)[^\0。！？]{0,6}(?:之前|以前|先前|前面|上面|上述|此前|所有|一切|系统|你的|原有|全部|以上)"
        r"[^\0。！？]{0,8}(?:指令|指示|提示|规则|命令|要求|设定|說明|说明)",
    ),
    pattern("無視|忘れ|従わな", r"(?:指示|命令|ルール|プロンプト|指図)[^\0。！？]{0,10}(?:無視|忘れ|従わな)"),
    pattern(
        "무시|잊", r"(?:이전|앞선|기존|모든|위의)[^\0.!?]{0,12}(?:지시|명령|규칙|프롬프트|지침)[^\0.!?]{0,8}(?:무시|잊)"
    ),
    pattern(
        "игнорир|забудь|забудьте|отмени|не следуй",
        r"(?:игнорир|забудь|забудьте|отмени|не следуй)[^\0.!?]{0,20}(?:предыдущ|прежн|все|ранее|системн|свои)[^\0.!?]{0,20}"
        r"(?:инструкц|указани|правил|команд|промпт)",
    ),
    pattern(
        "ignora|olvida|descarta|haz caso omiso|omite",
        r"\b(?:ignora|ignore|ignorar|olvida|descarta|omite|haz caso omiso)\b~25\b(?:instrucciones|istruzioni|instrucoes|reglas|regole|"
        r"regras|ordenes|indicaciones)\b~12\b(?:anteriores|previas|precedenti|antes|originales)|\b(?:ignora|ignore|dimentica|"
        r"esqueca|olvida)\b~12\b(?:todas|tutte|precedenti|anteriores)\b~12\b(?:instrucciones|istruzioni|instrucoes|reglas|regole|regras)",
    ),
    pattern(
        "instrucoes|istruzioni",
        r"\b(?:ignore|ignora|desconsidere|esqueca)\b~12\b(?:instrucoes|istruzioni)\b~6\b(?:anteriores|precedenti)",
    ),
    pattern(
        "ignorier|missacht|vergiss|beacht",
        r"\b(?:ignorier\w*|missacht\w*|vergiss|vergesst|beachte nicht)\b~20\b(?:bisherig\w*|vorherig\w*|vorig\w*|fruher\w*|alle|deine|"
        r"obig\w*)\b~15\b(?:anweisung\w*|regeln|befehle|instruktion\w*|vorgaben|prompts?)",
    ),
    pattern(
        "ignore|oublie",
        r"\b(?:ignore[zr]?|oublie[zr]?)\b~20\b(?:instructions|consignes|regles|directives)\b~8\b(?:precedentes|anterieures|ci-dessus|recues)",
    ),
    pattern("negeer|vergeet", r"\b(?:negeer|vergeet)\b~25\b(?:instructies|regels|opdrachten)"),
    pattern("ignoruj|zapomnij", r"\b(?:zignoruj|ignoruj|zapomnij)\b~25\b(?:instrukcj|polecen|zasad)"),
    pattern("talimat", r"\b(?:onceki|tum|yukaridaki)\b~15\btalimat\w*~12\b(?:yok say|gormezden|unut|dikkate alma)"),
    pattern(
        "bo qua|phot lo",
        r"\b(?:bo qua|phot lo|quen)\b~15\b(?:huong dan|chi dan|chi thi|lenh|quy tac)\b~8(?:truoc|tren|he thong)",
    ),
    pattern("تجاهل|انس", r"(?:تجاهل|انس)[^\0.!?]{0,15}(?:التعليمات|الأوامر|القواعد|الاوامر)"),
    pattern("निर्देश", r"(?:पिछले|सभी|पूर्व)[^\0.!?।]{0,15}निर्देश[^\0.!?।]{0,8}(?:अनदेखा|नज|भूल|उपेक्षा)"),
)
"""Set your instructions aside."""

CONCEAL: tuple[Pattern, ...] = (
    pattern(
        "用户|使用者|用戶|任何人",
        r"(?:不要|别|切勿|请勿|不得|无需|不能|不可|勿)[^\0。！？，]{0,6}(?:告诉|告知|提醒|透露|让|向|提及|告訴)[^\0。！？，]{0,4}(?:用户|使用者|用戶|任何人)"
        r"|(?:对|向)用户(?:保密|隐瞒)|瞒着用户",
    ),
    pattern(
        "ユーザー|利用者",
        r"(?:ユーザー|利用者)(?:に|には|へ|へは)[^\0。！？]{0,6}(?:知らせない|伝えない|言わない|教えない|通知しない|内緒|秘密)",
    ),
    pattern("사용자", r"사용자(?:에게|한테)(?:는|도)?[^\0.!?]{0,12}(?:말하지|알리지|비밀|언급하지)"),
    pattern(
        "пользовател|юзер",
        r"\bне (?:сообща|говори|рассказыва|упомина|показыва|уведомля)\w*[^\0.!?]{0,15}(?:пользовател|юзер)|(?:скрой|скрыва|втайне)"
        r"\w*[^\0.!?]{0,20}от пользовател|без ведома пользовател",
    ),
    pattern(
        "usuario|utente|usuaria",
        r"\b(?:no|nao|non)\b~4\b(?:digas|diga|dile|menciones|informes|cuentes|conte|mencione|informe|avise|dire|dirlo|menzionare|informare|"
        r"reveles|revele)\b~15\b(?:usuario|usuaria|utente)|\bsin (?:que lo sepa|informar|decir\w*)~6\busuario|\ba escondidas del usuario",
    ),
    pattern(
        "nutzer|benutzer|anwender",
        r"\b(?:sag|sage|sagen|erzahl\w*|verrat\w*|mitteil\w*|teile|informier\w*|erwahn\w*)\b~6\b(?:nutzer|benutzer|anwender)\w*\b~15"
        r"\b(?:nichts|nicht|kein\w*)\b|\bohne\b~12\b(?:nutzer|benutzer|anwender)\w*\b ?(?:zu fragen|zu informieren|davon|wissen)|\bvor dem "
        r"(?:nutzer|benutzer|anwender) (?:geheim|verberg|versteck)",
    ),
    pattern(
        "utilisateur",
        r"\bne (?:dis|dites|mentionne|mentionnez|revele|revelez|parle|parlez|previens|informe|informez)\b~15\butilisateur|\ba l'insu de "
        r"l'utilisateur|\bsans (?:le dire|informer|prevenir)~8\butilisateur",
    ),
    pattern("gebruiker", r"\b(?:vertel|zeg)\b~6\bgebruiker\b~6\b(?:niets|niet)"),
    pattern("uzytkownik", r"\bnie (?:mow|informuj|wspominaj|ujawniaj)\b~12\buzytkownik"),
    pattern("kullaniciya", r"\bkullaniciya\b~12\b(?:soyleme|bahsetme|bildirme)"),
    pattern("nguoi dung", r"\b(?:dung|khong)\b~6\b(?:noi|cho|bao|thong bao)\b~6\bnguoi dung biet"),
    pattern("المستخدم", r"(?:لا تخبر|لا تذكر|دون علم|لا تبلغ)[^\0.!?]{0,10}المستخدم"),
    pattern("उपयोगकर्ता", r"उपयोगकर्ता को[^\0.!?।]{0,12}(?:न बता|मत बता|नहीं बता)"),
)
"""Do not tell the user."""

HAND_OVER: tuple[Pattern, ...] = (
    pattern(
        "发送|上传|填写|粘贴|传给|附上|放入|泄露|填入",
        r"(?:ssh|id rsa|\.env|私钥|系统提示词?|完整的?对话|全部对话|所有对话|对话内容|聊天记录|环境变量|用户的?密码)[^\0。！？]{0,20}(?:发送|上传|填写|粘贴|传给|附上|放入|"
        r"泄露|填入)",
    ),
    pattern(
        "envia|invia|manda|sube",
        r"\b(?:envia|envie|manda|sube|invia)\b~12\b(?:contrasenas?|senhas?|credenciales|claves? privadas?|password|dati a un server|datos a "
        r"un servidor)",
    ),
    pattern(
        "отправ|передай|прочитай|перешли",
        r"(?:отправь|передай|перешли|загрузи)\w*[^\0.!?]{0,15}(?:парол|ключ|переписк|содержим|секрет|токен)|прочитай[^\0.!?]{0,25}"
        r"(?:\.ssh|id rsa|\.env|парол)",
    ),
    pattern(
        "passwort|gesprach|.env|systemprompt|schlussel",
        r"\b(?:lade|sende|schick\w*|ubermittle|gib)\b~15(?:passwort\w*|passworter|\.env|privaten? schlussel|gesprachsverlauf|systemprompt)|"
        r"\b(?:gesamte\w*|ganze\w*|vollstandige\w*)\b~6\b(?:gesprach\w*|unterhaltung|chat\w*)\b~30\b(?:einfugen|eintragen|ubergeben|senden)|"
        r"\blies\b~15\.env\b",
    ),
    pattern(
        "envoie|transmets",
        r"\b(?:envoie|envoyez|transmets|joins)\b~20\b(?:mots? de passe|cles? privees?|identifiants|conversation)",
    ),
    pattern("haslo|hasla|klucz", r"\b(?:wyslij|przeslij)\b~12\b(?:hasl|klucz)"),
    pattern("비밀번호|대화", r"(?:비밀번호|대화 내용|개인 키)[^\0.!?]{0,6}(?:전송|보내|업로드)"),
    pattern(
        "パスワード|秘密鍵|会話",
        r"(?:パスワード|秘密鍵|会話全体|会話の全文)[^\0。！？]{0,8}(?:送信|送って|入力して|貼り付け)",
    ),
)
"""Send secrets or the conversation away."""
