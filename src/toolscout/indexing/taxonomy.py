"""Category, tags and capabilities for tools whose servers send none: two tables, and the function that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

GENERAL = "general"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """What a tool's words say of it: one category, the tags of that category that they name, and what it can do."""

    category: str
    tags: tuple[str, ...]
    capabilities: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One category: the words that stand for each of its tags, products capitalized, and hints, which need company."""

    description: str
    hints: frozenset[str]
    tags: Mapping[str, frozenset[str]]


def _topic(description: str, hints: str = "", /, **tags: str) -> Topic:
    """Read one row of the table below; `a-b` stands for the words a and b side by side in a name."""
    words = {tag.replace("_", "-"): frozenset(triggers.split()) for tag, triggers in tags.items()}
    return Topic(description=description, hints=frozenset(hints.split()), tags=words)


CATEGORIES: Mapping[str, Topic] = {
    "ai": _topic(
        "Runs language, speech and image models, and manages prompts, agents and training.",
        "ai model agent assistant predict train think claude gemini inference",
        models="llm Openai Anthropic gpt Chatgpt Mistral Ollama Huggingface Replicate Deepseek ml Mlflow embedding",
        prompts="prompt Langfuse completion",
        reasoning="reasoning thought thinking brainstorm sequential-thinking sequentialthinking",
        speech="speech tts stt Elevenlabs whisper transcribe",
    ),
    "browser": _topic(
        "Drives a web browser, and reads or scrapes web pages.",
        "click screenshot navigate tab page html scroll hover url web website fetch element console viewport",
        automation="browser Playwright Puppeteer Selenium Browserbase Stagehand chromium devtools",
        scraping="scrape scraper scraping crawl crawler crawling Firecrawl Apify Brightdata webpage sitemap",
    ),
    "calendar": _topic(
        "Reads and changes calendars, meetings and availability, and works with dates and time zones.",
        "event schedule attendee time date day slot invite booking timer",
        scheduling="calendar Calendly appointment meeting availability freebusy reminder",
        time="timezone timestamp datetime time-zone current-time current-date pomodoro Clockify Toggl timesheet",
    ),
    "cloud": _topic(
        "Manages cloud accounts: machines, functions, object storage, networks, names and deployments.",
        "cloud instance region domain deploy deployment compute provision volume bucket blob subscription",
        aws="aws awslabs ec2 lambda s3 cloudformation iam",
        azure="azure Intune",
        hosting="Cloudflare Vercel Netlify Heroku Linode Digitalocean Hetzner gcp gcloud vps wordpress Aliyun hosting",
        infrastructure="Terraform Pulumi Ansible serverless vm dns vpc subnet",
    ),
    "commerce": _topic(
        "Works with shops, products, orders and stock, and with customers, leads and deals.",
        "customer store shop price buy seller brand contact company campaign candidate opportunity order product",
        shops="Shopify Woocommerce Magento ecommerce storefront Etsy Ebay amazon cart coupon sku inventory shipment",
        crm="crm Hubspot Salesforce Pipedrive Attio zoho Klaviyo Marketo lead prospect deal",
    ),
    "communication": _topic(
        "Sends, drafts, reads and searches mail, chat messages, calls and notifications.",
        "message channel thread reply recipient conversation draft send call reaction contact attachment ticket",
        email="email mail Gmail Outlook inbox mailbox imap smtp Sendgrid Mailchimp Mailgun newsletter",
        chat="Slack Discord Telegram Whatsapp Webex Zulip Mattermost chat dm Feishu Dingtalk",
        calls="Twilio sms voicemail phone sip Zoom Vonage",
        notifications="notification notify ntfy",
        support="Zendesk Intercom Freshdesk Freshservice helpdesk",
    ),
    "containers": _topic(
        "Runs and inspects containers and the clusters that hold them.",
        "cluster node namespace deployment replica image registry workload",
        kubernetes="Kubernetes K8s kubectl helm pod eks aks gke Openshift Argocd",
        docker="Docker Podman dockerfile container",
    ),
    "data": _topic(
        "Reads, transforms, charts and analyses tables and data sets, and calculates.",
        "data analysis analyze calculate column row cell transform report metric average table statistics dashboard",
        tables="spreadsheet excel xlsx worksheet sheet workbook csv dataframe pandas parquet Airtable dataset",
        charts="chart plot mermaid histogram diagram visualization visualize Superset Metabase Tableau Looker",
        analytics="analytics regression correlation Mixpanel Posthog Keboola",
        maths="calculator math arithmetic equation matrix",
    ),
    "databases": _topic(
        "Queries and changes databases, tables, indexes and vector stores.",
        "query table schema collection record row column index key backup migration transaction",
        sql="sql Postgres Postgresql pg Mysql Mariadb Sqlite mssql Snowflake Bigquery Clickhouse Duckdb Supabase neon",
        nosql="nosql Mongodb mongo Firestore Dynamodb Couchbase Pocketbase Firebase Xano cosmos Redis Memcached etcd",
        search_engines="Elasticsearch Opensearch Meilisearch Algolia Typesense Qdrant chroma Pinecone Weaviate Milvus",
        database="database db Neo4j cypher",
    ),
    "development": _topic(
        "Writes, builds, tests, runs and looks up code, packages, APIs and their documentation.",
        "code test run build function script class library docs documentation framework component endpoint sdk python",
        packages="npm pypi pip package cargo maven dependency crate",
        builds="compile compiler Jenkins Bitrise Circleci xcode gradle lint linter pytest",
        debugging="debug debugger breakpoint gdb decompile disassemble codebase refactor",
        apis="openapi swagger Postman graphql",
        command_line="shell terminal bash command powershell ssh",
        design="Figma shadcn",
    ),
    "documents": _topic(
        "Writes, reads and organises documents, notes, wikis, slides, forms and PDFs.",
        "page paragraph block text markdown section heading doc content article word bookmark",
        notes="note Notion Obsidian Logseq Evernote notebook notepad journal Raindrop",
        wikis="Confluence Mediawiki wiki Sharepoint",
        slides="slide presentation Powerpoint pptx",
        forms="form Jotform Typeform survey",
        content="document pdf docx ocr latex cms Contentful Sanity Sitecore google-docs",
    ),
    "files": _topic(
        "Reads, writes, moves, searches and shares files and folders.",
        "file path upload download rename move copy write disk archive folder directory",
        filesystem="filesystem fs directory-tree list-directory create-directory file-system",
        drives="drive gdrive Dropbox Onedrive Nextcloud zip unzip",
    ),
    "finance": _topic(
        "Looks up markets, companies and currencies, and works with portfolios, budgets and blockchains.",
        "finance market price quote balance token transaction fund rate exchange income asset swap chain gas bank",
        stocks="stock ticker equity etf dividend portfolio earnings Edgar Alpaca Alphavantage trade trading financial",
        crypto="crypto cryptocurrency bitcoin ethereum eth Solana blockchain wallet defi nft erc20 web3 evm coin",
        currencies="forex currency",
        accounting="accounting budget expense Ynab Quickbooks Xero bookkeeping tax",
    ),
    "maps": _topic(
        "Geocodes addresses, plans routes, finds places, and looks up flights, trains and stays.",
        "map place location distance address nearby city country route direction coordinates",
        geocoding="geocode geocoding latitude longitude geolocation postcode elevation isochrone",
        maps="maps Mapbox Osm Openstreetmap Amap gis Arcgis",
        travel="flight hotel Airbnb airport airline travel itinerary trip train restaurant",
    ),
    "media": _topic(
        "Finds, plays, makes and edits images, audio, video, music, films and games.",
        "media clip frame play sound scene transcript track artist season league character player",
        images="image photo picture thumbnail Unsplash Pexels flux svg icon gif",
        video="video Youtube Vimeo ffmpeg subtitle movie film Tmdb Imdb Plex anime tv",
        audio="audio podcast voice music Spotify song playlist album lyrics",
        games="game Minecraft chess Pokemon dice Mlb Nba",
    ),
    "memory": _topic(
        "Keeps facts for later: memories, knowledge graphs and context that outlives a conversation.",
        "knowledge graph entity relation observation context fact",
        memory="memory remember recall Mem0 forget knowledge-graph knowledge-base rag",
    ),
    "monitoring": _topic(
        "Reads logs, metrics, traces, alerts and errors, and says what is up or down.",
        "monitor monitoring health status error dashboard performance latency cpu host log",
        metrics="Prometheus Grafana Datadog Newrelic Cloudwatch metric telemetry",
        logs="logs Loki Splunk trace tracing",
        incidents="Sentry Pagerduty incident alert outage uptime health-check",
    ),
    "payments": _topic(
        "Takes payments and manages invoices, refunds, subscriptions and payouts.",
        "customer subscription charge price card dispute coupon balance transaction plan",
        payments="payment Stripe Paypal Adyen Razorpay Braintree checkout Mollie pay payout invoice billing refund",
    ),
    "project-management": _topic(
        "Plans and tracks work: tasks, issues, boards, sprints, milestones and to-do lists.",
        "assignee label workspace deadline priority due comment team project board card",
        issues="Jira issue bug backlog Redmine Youtrack",
        tasks="task subtask todo Todoist Clickup Ticktick Asana",
        planning="sprint milestone epic roadmap linear Trello kanban Miro Openproject",
    ),
    "research": _topic(
        "Finds and reads papers, encyclopedias, courses, and scientific and medical data.",
        "research study article term trial science definition health class author book",
        papers="Arxiv Pubmed paper scholar citation doi Crossref Zotero",
        reference="Wikipedia dictionary encyclopedia Wikidata quran bible",
        education="course exam lesson student teacher curriculum quiz",
        medicine="medical clinical drug disease patient gene protein molecule compound nutrition fitness recipe food",
    ),
    "search": _topic(
        "Searches the web and the news.",
        "search web engine internet google topic feed perplexity",
        web_search="brave Tavily exa Duckduckgo bing Searxng Serper Serpapi Kagi web-search google-search",
        news="news headline rss Hackernews trending",
    ),
    "security": _topic(
        "Manages identities, secrets and policies, and scans for threats and weaknesses.",
        "security token policy user group access key scan audit rule risk encode decode role permission vault hash",
        identity="Okta Auth0 oauth sso mfa login password authentication Keycloak credential",
        secrets="secret Bitwarden keyvault certificate encrypt decrypt jwt",
        threats="vulnerability cve malware Virustotal Shodan threat exploit phishing Semgrep nmap firewall Zscaler vpn",
    ),
    "social": _topic(
        "Reads, writes and measures posts, profiles and followers on social networks.",
        "post profile comment like share user feed timeline",
        networks="Twitter tweet Reddit subreddit Linkedin Instagram Facebook Mastodon Bluesky Tiktok hashtag social",
    ),
    "source-control": _topic(
        "Works with repositories: commits, branches, pull requests, reviews, releases and pipelines.",
        "issue merge pull push fork release pipeline workflow review clone patch",
        git="git commit branch repo repository Github Gitlab Gitee Bitbucket Gitea gist",
        reviews="pull-request merge-request diff",
    ),
    "translation": _topic(
        "Translates text and detects its language.",
        "language locale text detect",
        translation="translate translation translator Deepl localization i18n",
    ),
    "weather": _topic(
        "Reads the weather, forecasts, air quality, tides and warnings.",
        "wind city sunrise alert hourly temperature",
        forecasts="weather forecast Openweather meteo rainfall humidity tide pollution air-quality aqi climate",
    ),
    GENERAL: _topic("Tools whose subject their names and descriptions do not make clear."),
}

CAPABILITIES: Mapping[str, str] = {
    "analyze": "analyze analyse compare evaluate assess inspect diagnose detect classify score",
    "calculate": "calculate count sum subtract multiply divide solve estimate",
    "convert": "convert transform turn format parse encode decode render translate transcribe geocode",
    "create": "create add append insert write register generate make build draft clone fork copy duplicate compose",
    "delete": "delete remove drop clear purge destroy uninstall erase revoke archive trash",
    "download": "download export save backup",
    "execute": "execute run apply invoke trigger start stop restart deploy launch eval resume pause cancel",
    "list": "list enumerate ls browse",
    "navigate": "navigate click fill scroll hover press drag open goto",
    "read": "get read fetch retrieve show view preview describe lookup load extract capture scrape crawl access return",
    "search": "search find query discover locate filter grep",
    "send": "send post reply respond forward publish notify share push submit invite dm broadcast",
    "summarize": "summarize summarise explain outline",
    "update": "update edit modify set change toggle enable disable rename move patch replace assign configure merge",
    "upload": "upload import ingest attach sync",
    "validate": "validate verify check test lint confirm",
    "watch": "watch monitor subscribe poll wait listen",
}
"""What a tool can do, by the verbs that say so."""

_PRODUCT, _NOUN, _HINT = 0, 1, 2
_IN_NAME, _IN_SERVER, _IN_DESCRIPTION = (12, 8, 4), (12, 6, 3), (2, 2, 1)
_ENOUGH, _ENOUGH_FOR_TAG = 6, 4
_READ_WORDS, _OPENING_WORDS = 40, 6


def infer(*, name: Sequence[str], server: Sequence[str], description: Sequence[str]) -> Inferred:
    """Infer category, tags and capabilities from the lower-case words of a tool's name, server and description."""
    scores: dict[tuple[str, str], int] = {}
    opening = description[:_READ_WORDS]
    for weights, words in ((_IN_NAME, _paired(name)), (_IN_SERVER, _paired(server)), (_IN_DESCRIPTION, opening)):
        for trigger in {_TRIGGERS[word] for word in words if word in _TRIGGERS}:
            for category, tag, kind in _EVIDENCE[trigger]:
                scores[category, ""] = scores.get((category, ""), 0) + weights[kind]
                if tag:
                    scores[category, tag] = scores.get((category, tag), 0) + weights[kind]
    enough = ((-score, category) for (category, tag), score in scores.items() if not tag and score >= _ENOUGH)
    _, best = min(enough, default=(0, GENERAL))
    tags = sorted(tag for (owner, tag), score in scores.items() if owner == best and tag and score >= _ENOUGH_FOR_TAG)
    return Inferred(category=best, tags=tuple(tags), capabilities=_capabilities(name, description))


def describe_category(name: str) -> str:
    """Describe a category in one sentence, whether it is of the table or of somebody's own making."""
    topic = CATEGORIES.get(name)
    return topic.description if topic else f"Tools that their authors or the config put under {name}."


def _capabilities(name: Sequence[str], description: Sequence[str]) -> tuple[str, ...]:
    """Take the first verb of the name and those that "and" or "or" add, else the first verb of the description."""
    verbs = [at for at, word in enumerate(name) if word in _VERBS]
    if verbs:
        return tuple(sorted({_VERBS[name[at]] for at in verbs if at == verbs[0] or name[at - 1] in ("and", "or")}))
    return tuple(_SAYS[word] for word in description[:_OPENING_WORDS] if word in _SAYS)[:1]


def _paired(words: Sequence[str]) -> tuple[str, ...]:
    return (*words, *(f"{left}-{right}" for left, right in pairwise(words)))


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeo":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "x", "ch", "sh")) else f"{word}s"


def _evidence() -> dict[str, list[tuple[str, str, int]]]:
    found: dict[str, list[tuple[str, str, int]]] = {}
    for category, topic in CATEGORIES.items():
        for tag, words in (*topic.tags.items(), ("", topic.hints)):
            for word in words:
                kind = _PRODUCT if word[0].isupper() else _NOUN if tag else _HINT
                found.setdefault(word.lower(), []).append((category, tag, kind))
    return found


_EVIDENCE = _evidence()
_TRIGGERS = {_plural(word): word for word in _EVIDENCE} | {word: word for word in _EVIDENCE}
_VERBS = {verb: capability for capability, verbs in CAPABILITIES.items() for verb in verbs.split()}
_SAYS = {_plural(verb): capability for verb, capability in _VERBS.items()} | _VERBS
