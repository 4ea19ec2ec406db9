"""What people ask tools for, in English, Chinese, Spanish, German and Japanese.

One line for each English word, in that order; a form that ends in * stands for every word that begins so. Letters are
written without accents, as requests are read. The words are the commonest of tool names and their first sentences.
"""

GLOSSARY = """
get|获取 取得 得到|obten* consigu* consegu*|hol* bekomm* erhalt* abruf*|取得 入手
list|列出 列表 清单 名单|lista* enumera*|list* auflist* aufzahl*|一覧 リスト 列挙
show|显示 展示 查看 看看 看|muestr* mostrar* ensena* ver|zeig* anzeig* anseh*|表示 見せ 見る 見たい
create|创建 新建 建立 生成 制作|crea* genera* elabora* hacer|erstell* anleg* erzeug* mach*|作成 作る 作り 生成
make|做|haz hag*|baue* bauen|作って
search|搜索 搜寻 检索 搜|busca* busque*|such* durchsuch*|検索
find|查找 寻找 找到 找|encontrar* encuentr* halla* localiza*|find*|探す 探し 見つけ
update|更新 升级|actualiz*|aktualisier*|更新 アップデート
delete|删除 删掉|elimin* borra* borre* suprim*|losch*|削除 消す 消し
remove|移除 去掉 清除|quita* remov* retira*|entfern*|取り除 除去
add|添加 增加 加入 新增 加|anad* agreg* suma*|hinzufug* hinzu erganz* fuge|追加 加え
change|更改 改变 修改 变更|cambi* modific*|ander* verander*|変更 変え 修正
edit|编辑|edita*|bearbeit*|編集
send|发送 寄送 发出 发一封 发给 寄|envi* manda*|send* schick* versend* verschick*|送信 送る 送って 送り 送付
read|读取 阅读 读|lee* leer|les* lies|読む 読み 読んで
write|写入 编写 撰写 写|escrib*|schreib* verfass*|書く 書き 書いて 執筆
open|打开 开启|abr*|offn*|開く 開いて 開き
close|关闭 关上|cierra cerrar cierre|schliess*|閉じ 閉める
save|保存 存储 储存|guarda* guarde*|speicher* sicher*|保存 セーブ
copy|复制 拷贝|copia*|kopier* kopie*|コピー 複製
move|移动 搬移|mueve* mover traslad*|verschieb* beweg*|移動 動かす
rename|重命名 改名|renombr*|umbenenn* benenn*|名前を変更 名前の変更 改名 リネーム
upload|上传|subir sube suba carga*|hochlad* lade|アップロード
download|下载|descarg* baja*|herunterlad* download*|ダウンロード
import|导入|importa*|importier*|インポート 取り込み 取り込む
export|导出|exporta*|exportier*|エクスポート 書き出し
run|运行 执行|ejecut* corre*|ausfuhr* fuhr* starte laufen|実行 走らせ
start|启动 开始|inicia* comenz* comienz* arranc*|start* beginn*|開始 起動 始め
stop|停止 停下 中止|deten* para parar|stopp* anhalt* beend*|停止 止め 中止
restart|重启 重新启动|reinici*|neustart* neustarten|再起動 リスタート
cancel|取消|cancel* anula*|absag* stornier* abbrech* kundig*|キャンセル 取り消 取消
schedule|安排 预约 排程|programa* agenda* planific*|plan* einplan* vereinbar* ansetz*|予定する スケジュール 予約
book|预订 订购 预定|reserv*|buch* reservier*|予約 ブッキング
plan|规划 计划|planea* plan*|plan*|計画 プラン
check|检查 核对 查一下|comprueb* comproba* revis* verific* chequea*|pruf* uberpruf* kontrollier*|確認 調べ チェック
query|查询|consult*|abfrag*|クエリ 照会 問い合わせ
look up|查一查 查|averigu*|nachschlag* nachseh*|調べる 調べて
compare|比较 对比|compar*|vergleich*|比較 比べ
calculate|计算 算|calcul*|berechn* rechn*|計算
count|统计 计数 多少|cuent* contar cuant*|zahl* wieviel*|数える いくつ カウント
convert|转换 换算|convert* convierte*|umwandel* umrechn* konvertier*|変換 換算
translate|翻译|traduc* traduz*|ubersetz*|翻訳 訳し
summarize|总结 概括 摘要|resum*|zusammenfass* fasse|要約 まとめ
explain|解释 说明|explic*|erklar* erlauter*|説明
describe|描述|describ*|beschreib*|記述 詳細
analyze|分析|analiz*|analysier* analyse*|分析 解析
generate|生成|genera*|generier*|生成
merge|合并|fusion* combin* une unir|zusammenfuhr* merg* vereinig*|マージ 統合 結合
share|分享 共享|compart*|teil* freigeb*|共有 シェア
publish|发布 公布|public*|veroffentlich*|公開 投稿 発行
post|发帖 发布 发一条 发表|publica*|post* poste|投稿
reply|回复 答复|respond* contest* respuest*|antwort*|返信 返答
comment|评论 留言|coment*|kommentar* kommentier*|コメント
assign|分配 指派|asign*|zuweis* zuteil*|割り当て 担当
approve|批准 审批 通过|aprob* aprueb*|genehmig* freigegeb* freigab*|承認
accept|接受|acept*|annehm* akzeptier*|受け入れ 承諾
invite|邀请|invit*|einlad*|招待
pay|付款 支付|paga* pague*|bezahl* zahl*|支払 払う
payment|付款 支付 款项|pago* cobro*|zahlung* bezahlung*|支払い 決済
refund|退款 退钱|reembols* devol*|erstatt* ruckerstatt*|返金 払い戻
buy|购买 买|compra* compre*|kauf*|購入 買う 買い
sell|出售 卖|vend*|verkauf*|販売 売る
order|订单 订购|pedido* orden*|bestell* auftrag*|注文 オーダー
install|安装|instal*|installier*|インストール
deploy|部署|despl* implement*|deploy* bereitstell*|デプロイ 配備
scale|扩容 缩放 扩展|escal*|skalier*|スケール 拡大 拡張
monitor|监控 监测|monitor* vigila*|uberwach*|監視 モニター
notify|通知|notific* avisa*|benachrichtig*|通知 知らせ
track|跟踪 追踪|rastre* segu*|verfolg*|追跡
record|记录 录制|registr* grab*|aufzeichn* aufnehm*|記録 録音 録画
log|日志|registro* log*|log* protokoll*|ログ
click|点击 单击|clic pulsa* presiona*|klick*|クリック 押す
fill|填写 填|rellen* llena*|ausfull* full*|入力 記入
form|表单 表格|formulari*|formular*|フォーム 用紙
navigate|访问 前往|naveg*|navigier*|移動する
capture|捕捉 截取|captura* capture*|aufnahme*|撮る 撮影 取り込み
screenshot|截图 截屏 屏幕截图|captura|screenshot* bildschirmfoto*|スクリーンショット
draw|画 绘制|dibuj* traza*|zeichn*|描く 描画
play|播放|reproduc* toca*|abspiel* spiel*|再生
email|电子邮件 邮件 邮箱 电邮|correo* mail* email*|mail* email*|電子メール メール
mail|信件 来信|carta*|post brief*|手紙 郵便
draft|草稿|borrador*|entwurf* entwurfe*|下書き 草案
attachment|附件|adjunt*|anhang* anlage*|添付 添付ファイル
message|消息 信息 短信 留言|mensaje*|nachricht*|メッセージ 伝言
channel|频道|canal*|kanal* kanale*|チャンネル
chat|聊天|chat* charla*|chat* gesprach*|チャット
reaction|回应 反应|reaccion*|reaktion* reagier*|リアクション 反応
emoji|表情|emoji*|emoji*|絵文字
meeting|会议 开会|reunion*|besprechung* meeting* treffen termin*|会議 ミーティング 打ち合わせ
event|活动 事件|evento*|ereignis* veranstaltung* termin*|イベント 行事 出来事
calendar|日历 日程|calendario* agenda|kalender*|カレンダー 予定
free|有空 空闲 空|libre*|frei zeit|空いて 空き
busy|忙|ocupad*|beschaftigt|忙しい
today|今天 今日|hoy|heute|今日
tomorrow|明天 明日|manana|morgen|明日
week|星期 周 本周 这周|seman*|woche*|週 今週 週間
weekend|周末|finde|wochenende*|週末
time|时间 时候 几点|hora* tiempo|zeit* uhrzeit*|時間 時刻 時
time zone|时区|zona|zeitzone*|タイムゾーン 時間帯
date|日期|fecha*|datum*|日付 日にち
history|历史|historial* historia|verlauf* historie* geschichte*|履歴 歴史
recent|最近 最新|reciente* ultim*|neueste* letzt* aktuell*|最近 最新
current|当前 现在 目前|actual ahora|aktuell* jetzt gerade|現在 今
new|新的 新|nuev*|neu*|新しい 新規
all|所有 全部|tod*|alle*|すべて 全て 全部
team|团队 小组|equipo*|team*|チーム
user|用户|usuari*|benutzer* nutzer*|ユーザー 利用者
person|人 人员|persona* gente|person* leute*|人 人物
everybody|大家 所有人|todos|alle|みんな 全員
colleague|同事|colega* companer*|kolleg*|同僚
boss|老板 上司|jefe* jefa*|chef*|上司 ボス
profile|资料 个人资料 简介|perfil*|profil*|プロフィール
account|账户 账号 帐户 帐号|cuenta*|konto* konten*|アカウント 口座
bank|银行|banco*|bank*|銀行
customer|客户 顾客|client*|kund*|顧客 お客様 取引先
company|公司|empresa* compania*|firma* unternehm*|会社 企業
contact|联系人 联系|contact*|kontakt*|連絡先 連絡
invoice|发票 账单|factura*|rechnung*|請求書 インボイス
price|价格 价钱|precio*|preis*|価格 値段
money|钱 金额|dinero|geld*|お金 金額
currency|货币 汇率|moneda* divisa*|wahrung*|通貨 為替
stock|股票|accion* bolsa|aktie* borse*|株 株価
product|产品 商品|product*|produkt* artikel*|製品 商品
subscription|订阅|suscrip*|abonnement* abo|購読 サブスクリプション
link|链接|enlace*|link* verknupf*|リンク
project|项目|proyecto*|projekt*|プロジェクト
task|任务|tarea*|aufgabe*|タスク 作業
ticket|工单 票|ticket* boleto*|ticket*|チケット
issue|议题 问题|incidencia* problema*|problem* issue*|課題 問題
bug|错误 漏洞 缺陷|error* fallo* bug*|fehler* bug*|バグ 不具合
error|出错 报错|error*|fehler*|エラー 誤り
report|报告 汇报|report* informe* inform*|bericht* meld*|報告 レポート
backlog|待办列表 待办|backlog*|backlog*|バックログ
sprint|冲刺|sprint*|sprint*|スプリント
board|看板|tablero*|tafel* board*|ボード 掲示板
status|状态|estado*|status* zustand*|状態 ステータス
repository|仓库 代码库 存储库|repositori*|repository* repo*|リポジトリ
branch|分支|rama*|branch* zweig*|ブランチ
commit|提交|commit*|commit*|コミット
pull request|拉取请求 合并请求|solicitud*|pull|プルリクエスト
code|代码 源代码 源码|codigo*|code* quellcode* quelltext*|コード ソースコード
function|函数 功能|funcion*|funktion*|関数 機能
file|文件 档案|archivo* fichero*|datei*|ファイル
folder|文件夹 目录|carpeta* directorio*|ordner* verzeichnis*|フォルダー フォルダ ディレクトリ
disk|磁盘 硬盘|disco*|festplatte* platte*|ディスク
path|路径|ruta*|pfad*|パス
text|文本 文字|texto*|text*|テキスト 文章
document|文档 文件|documento*|dokument*|文書 ドキュメント 書類
page|页面 网页|pagina*|seite* webseite*|ページ
note|笔记 备注|nota*|notiz*|メモ ノート
workspace|工作区|espacio|arbeitsbereich*|ワークスペース
table|表 数据表|tabla*|tabelle*|テーブル 表
column|列|columna*|spalte*|列 カラム
row|行 数据行|fila*|zeile*|行
type|类型 数据类型|tipo*|typ*|型 種類 タイプ
database|数据库|base datos|datenbank*|データベース
data|数据|dato*|daten*|データ
record|记录|registro*|datensatz*|レコード
image|图片 图像 照片|imagen* foto*|bild* foto*|画像 写真
video|视频|video* video|video*|動画 ビデオ 映像
music|音乐 歌曲|musica cancion*|musik* lied*|音楽 曲
news|新闻|noticia*|nachrichten neuigkeit*|ニュース
article|文章|articulo*|artikel*|記事
web|网 网络 网站|web sitio|web* internet*|ウェブ サイト
website|网站|sitio*|website* webseite*|ウェブサイト
address|地址 网址|direccion*|adresse* webadresse*|住所 アドレス
url|网址 链接|url|url|URL
browser|浏览器|navegador*|browser*|ブラウザ
button|按钮|boton*|schaltflache* knopf* button*|ボタン
element|元素|elemento*|element*|要素
server|服务器|servidor*|server*|サーバー
container|容器|contenedor*|container*|コンテナ
cluster|集群|cluster*|cluster*|クラスター
pod|容器组|pod*|pod*|ポッド
deployment|部署|despliegue*|deployment*|デプロイメント
replica|副本|replica*|replik*|レプリカ
service|服务|servicio*|dienst* service*|サービス
bucket|存储桶|bucket*|bucket*|バケット
storage|存储|almacen*|speicher*|ストレージ 保管
backup|备份|respaldo* copia*|sicherung* backup*|バックアップ
password|密码|contrasena*|passwort* kennwort*|パスワード
key|密钥 钥匙|clave* llave*|schlussel*|鍵 キー
permission|权限|permiso*|berechtigung* recht*|権限 許可
security|安全|seguridad|sicherheit*|セキュリティ 安全
setting|设置 配置|ajuste* configur*|einstellung* konfig*|設定
language|语言|idioma* lengua*|sprache*|言語 言葉
french|法语|frances*|franzosisch*|フランス語
english|英语 英文|ingles*|englisch*|英語
german|德语|aleman*|deutsch*|ドイツ語
spanish|西班牙语|espanol*|spanisch*|スペイン語
chinese|中文 汉语|chino*|chinesisch*|中国語
japanese|日语 日文|japones*|japanisch*|日本語
sentence|句子 这句话 句|frase* oracion*|satz* satze*|文
word|单词 词|palabra*|wort* worter*|単語
weather|天气 气象|clima tiempo meteorolog*|wetter*|天気 気象
forecast|预报 天气预报|pronostic*|vorhersage* prognose*|予報 天気予報
temperature|温度 气温|temperatura*|temperatur*|気温 温度
rain|下雨 雨|lluvi* llover* llueve|regen* regn*|雨
air quality|空气质量|calidad aire|luftqualitat*|大気の質 空気質 大気質
alert|警报 警告 预警|alerta* aviso*|warnung* alarm*|警報 警告 アラート
map|地图|mapa*|karte*|地図
place|地方 地点|lugar* sitio*|ort* platz*|場所
location|位置 地点|ubicacion*|standort*|位置 場所
coordinates|坐标 经纬度|coordenad*|koordinat*|座標 緯度経度
route|路线 怎么走 路径|ruta* camino*|route* weg* strecke*|経路 ルート 道順
drive|开车 驾车|coche conducir|auto fahr*|車 運転
distance|距离|distancia*|entfernung* distanz*|距離
nearby|附近|cerca* cercan*|nahe* umgebung*|近く 付近
restaurant|餐厅 饭店 餐馆|restaurante*|restaurant*|レストラン 飲食店
hotel|酒店 旅馆|hotel*|hotel*|ホテル 宿
flight|航班 机票|vuelo*|flug* fluge*|飛行機 フライト 便
train|火车 列车|tren*|zug* zuge* bahn*|電車 列車
city|城市|ciudad*|stadt*|都市 市
country|国家|pais*|land* lander*|国
health|健康|salud|gesundheit*|健康
recipe|食谱 菜谱|receta*|rezept*|レシピ
game|游戏|juego*|spiel*|ゲーム
number|数字 号码|numero*|nummer* zahl*|番号 数
name|名称 名字|nombre*|name*|名前 名称
category|类别 分类|categoria*|kategorie*|カテゴリ 分類
label|标签|etiqueta*|etikett* label*|ラベル
tag|标记|etiqueta*|tag* schlagwort*|タグ
group|组 群组|grupo*|gruppe*|グループ
member|成员|miembro*|mitglied*|メンバー 会員
organization|组织|organizacion*|organisation*|組織
role|角色|rol*|rolle*|役割 ロール
version|版本|version*|version*|バージョン 版
release|发布 发行|lanzamiento*|veroffentlichung* release*|リリース
package|包 软件包|paquete*|paket*|パッケージ 荷物
test|测试|prueba* test*|test*|テスト 試験
pipeline|流水线|pipeline*|pipeline*|パイプライン
workflow|工作流 流程|flujo*|ablauf* workflow*|ワークフロー
chart|图表|grafico* grafica*|diagramm*|チャート グラフ
statistics|统计 统计数据|estadistic*|statistik*|統計
summary|摘要|resumen*|zusammenfassung*|概要
question|问题 提问|pregunta*|frage*|質問
answer|答案 回答|respuesta*|antwort*|回答 答え
information|信息 资料|informacion*|information* auskunft*|情報
details|详情 细节|detalle*|einzelheit* details|詳細
knowledge|知识|conocimiento*|wissen*|知識
memory|记忆 内存|memoria*|gedachtnis* erinner*|記憶 メモリ
remember|记住|record* recuerd*|merk* erinner*|覚え 記憶する
forever|永久 彻底|siempre definitiv*|endgultig* immer|完全に 永久
unread|未读|leido*|ungelesen*|未読
inbox|收件箱|bandeja*|posteingang*|受信箱 受信トレイ
event|预约|cita*|verabredung*|約束
slow|慢|lent*|langsam*|遅い
downtime|停机 中断|interrup* corte*|ausfall*|停止時間 ダウンタイム
latest|||neuest* letzte*|直近
popular|热门 流行 受欢迎|popular*|beliebt*|人気
best|最好 最佳|mejor*|beste*|最高 最適 おすすめの
recommend|推荐|recomiend* recomend*|empfehl* empfiehl*|おすすめ 推薦 勧め
suggest|建议|sugier* sugerir* suger*|vorschlag* schlage|提案
research|研究 调研|investig*|forsch* recherchier*|研究 調査
paper|论文|paper*|fachartikel* aufsatz*|論文
market|市场|mercado*|markt*|市場 マーケット
business|商业 业务 生意|negocio*|geschaft*|ビジネス 事業
financial|财务 金融|financier*|finanz*|財務 金融
job|工作 职位 招聘|empleo* trabajo*|stelle* arbeitsplatz*|仕事 求人
app|应用程序 应用|aplicacion*|anwendung* app apps|アプリ
day|天 日子|dia dias|tage tagen|日間
month|月份 个月 本月 上个月|mes meses|monat*|ヶ月 か月 今月 先月
year|今年 去年 年度|ano anos|jahr*|年間 今年 昨年
hour|小时|horas|stunde*|
yesterday|昨天|ayer|gestern*|昨日
trip|旅程 行程|viaje*|reise*|旅程 出張
travel|旅行 旅游|viaja*|reisen|旅行
trend|趋势|tendencia*|trend*|トレンド 傾向
activity||actividad*|aktivitat*|活動 アクティビティ
design|设计|disen*|entwerf* design*|デザイン 設計
car|汽车 车|coche* auto autos carro*|autos wagen fahrzeug*|自動車
sales|销售 销量|ventas|umsatz* vertrieb*|売上
transaction|交易|transaccion*|transaktion*|取引
network||red redes|netzwerk* netz|ネットワーク
resource|资源|recurso*|ressource*|リソース 資源
skill|技能|habilidad*|fahigkeit*|スキル
course|课程|curso*|kurs kurse lehrgang*|コース 講座
learn|学习|aprend*|lern*|学ぶ 学び 学習
extract|提取 抽取|extraer* extrae* extraig*|extrahier* auslesen|抽出 取り出
filter|筛选 过滤|filtr*|filter*|絞り込 フィルタ
sort|排序|ordena*|sortier*|並べ替え ソート
store|商店 店铺|tienda*|laden geschafte|店舗 お店
budget|预算|presupuesto*|budget* haushalt*|予算
expense|支出 费用 开支|gasto*|ausgabe* kosten|経費 支出 費用
cost|成本 花费|coste* costo*|kostet|コスト
keyword|关键词 关键字||schlusselwort* stichwort*|キーワード
model|模型|modelo*|modell*|モデル
metric|指标|metrica*|kennzahl* metrik*|指標 メトリクス
strategy|策略 战略|estrategia*|strategie*|戦略
property|房产 房源|propiedad* inmueble* vivienda*|immobilie*|物件 不動産
apartment|公寓|apartamento* piso|wohnung*|アパート マンション
house|房子 房屋|casa casas|haus hauser|家 住宅
room|房间|habitacion* sala|zimmer* raum*|部屋 会議室
guide|指南|guia*|leitfaden* anleitung*|ガイド 案内
playlist|播放列表 歌单|reproduccion*|wiedergabeliste* playlist*|プレイリスト
song|歌||lied lieder song*|歌
movie|电影|pelicula*|film filme*|映画
podcast|播客|podcast*|podcast*|ポッドキャスト
idea|主意 点子 想法|idea ideas|idee*|アイデア
rule|规则|regla*|regel*|ルール 規則
support|支持|soport* apoyo*|unterstutz*|サポート
balance|余额|saldo*|kontostand* guthaben*|残高
blog|博客|blog blogs|blog*|ブログ
gift|礼物|regalo*|geschenk*|プレゼント 贈り物
rate|利率|tasa*|zinssatz*|レート 金利
policy|政策|politica*|richtlinie*|ポリシー 方針
conversation|对话 会话|conversacion*|unterhaltung*|会話
average|平均|promedio*|durchschnitt*|平均
session||sesion*|sitzung*|セッション
card|卡片 卡|tarjeta*||カード
script|脚本|guion script*|skript*|スクリプト
campaign|营销活动 广告活动|campana*|kampagne*|キャンペーン
advertisement|广告|anuncio*|werbung*|広告
topic|主题 话题|tema temas|thema themen|トピック 話題
review|评价 点评|resena* opinion*|bewertung* rezension*|レビュー 口コミ
feedback|反馈||ruckmeldung*|フィードバック
overview|概览 概况|panorama*|uberblick* ubersicht*|
attraction|景点|atraccion*|sehenswurdigkeit*|観光地 名所
documentation|文档资料 说明文档|documentacion*|dokumentation*|
speed|速度|velocidad*|geschwindigkeit*|速度
traffic|流量 交通|trafico*|verkehr*|交通 トラフィック
build|构建 编译|compila* construi* construy*|kompilier* build*|ビルド 構築
audio|音频|audio*|audio* tonaufnahme*|音声 オーディオ
transcribe|转录 听写|transcrib* transcrip*|transkribier* verschriftlich*|文字起こし 書き起こ
presentation|演示文稿 幻灯片|presentacion* diapositiva*|prasentation* folie*|プレゼン スライド
command|命令 指令|comando*|befehl*|コマンド 命令
contract|合同 合约|contrato*|vertrag*|契約
signature|签名|firma* firme*|unterschrift* unterschreib*|署名
template|模板|plantilla*|vorlage*|テンプレート
configuration|||konfigur* einrichten|構成
purchase|采购|adquir* adquisicion*|anschaff*|購買
phone|电话 手机|telefono* movil|telefon* handy*|電話 携帯
call|打电话 呼叫|llama* llamada*|anruf* rufe|電話をかけ 通話
title|标题|titulo*|titel*|タイトル 題名
food|食物 食品|comida* alimento*|essen lebensmittel*|食べ物 料理
diet|饮食|dieta*|ernahrung* diat*|食事 ダイエット
exercise|锻炼 健身 运动|ejercicio*|ubung* training*|運動 トレーニング
resume|简历|curriculum* cv|lebenslauf*|履歴書
candidate|候选人|candidat*|bewerber* kandidat*|候補者
employee|员工 雇员|empleado*|mitarbeiter* angestellt*|従業員 社員
salary|工资 薪水|salario* sueldo*|gehalt* lohn*|給料 給与
growth|增长|crecimiento*|wachstum*|成長
wallet|钱包|billetera* monedero*|geldborse* wallet*|ウォレット 財布
diagram|示意图|diagrama*|schaubild*|図 ダイアグラム
graph|图形|grafic*|graph*|
asset|资产|activo*|vermogen*|資産
limit|限制 上限|limite* limita*|grenze* begrenz*|上限 制限
enable|启用 开通|activa* habilit*|aktivier* einschalt*|有効 オンにし
disable|禁用 停用|desactiva* deshabilit*|deaktivier* ausschalt*|無効 オフにし
turn on|打开电源 开灯|enciend* encend*|anmach* einschalte*|つけて 点灯
turn off|关掉 关灯|apaga* apague*|ausmach* abschalt*|消灯 電源を切
light|灯光 灯|luz luces|licht* lampe*|ライト 照明
device|设备|dispositivo*|gerat*|デバイス 端末 機器
camera|摄像头 相机|camara*|kamera*|カメラ
photo||fotografia*||
resize|调整大小|redimension*|verkleiner* vergrosser*|サイズ変更 リサイズ
sheet|工作表 电子表格|hoja*|tabellenblatt* tabellenkalkulation*|シート スプレッドシート
library|图书馆 库|biblioteca*|bibliothek*|ライブラリ 図書館
reminder|提醒|recordatorio* recuerdame||リマインダー
deadline|截止 期限|plazo* vencimiento*|frist*|締め切り 期限
priority|优先级|prioridad*|prioritat*|優先
shipment|发货 货运 包裹||sendung* lieferung*|出荷 配送
delivery|配送 送货|entrega* reparto*|zustellung*|配達
tax|税|impuesto*|steuer*|税金 税
loan|贷款|prestamo*|kredit* darlehen*|ローン 融資
exchange|兑换 交换|intercambi*|umtausch* wechselkurs*|両替
doctor|医生|medico*|arzt*|医者 医師
medicine|药物 药|medicamento* medicina*|medikament* arznei*|薬
symptom|症状|sintoma*|symptom*|症状
patient|患者 病人|paciente*|patient*|患者
student|学生|estudiante* alumno*|schuler* student*|学生 生徒
school|学校|escuela* colegio*|schule*|学校
law|法律 法规|ley leyes|gesetz*|法律
match|比赛|partido*|fussballspiel*|試合
score|比分 得分|puntuacion* marcador*|punktestand* ergebnis*|スコア 得点
ticket|门票 车票|entrada* billete*|fahrkarte* eintrittskarte*|切符
airport|机场|aeropuerto*|flughafen*|空港
parking|停车|aparca* estaciona*|parkplatz* parken|駐車
secret|机密|secreto*|geheimnis*|シークレット 秘密
certificate|证书|certificado*|zertifikat*|証明書
domain|域名|dominio*|domane*|ドメイン
instance|实例|instancia*|instanz*|インスタンス
queue|队列|cola colas|warteschlange*|キュー
request|请求|peticion*|anfrage* anforder*|リクエスト 要求
response|响应|||レスポンス 応答
failure|失败 故障|falla*|fehlgeschlagen* storung*|失敗 障害
log||registros||
"""
