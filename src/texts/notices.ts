/**
 * Every text that Parley itself says to people, in one table. `{name}` is filled in. An owner may
 * override any of them in the configuration; what a language lacks falls back to English.
 */

import { ParleyError } from '#contracts/errors.ts';

const english = {
  internalFailure: 'Sorry, something went wrong on my side. Please try again.',
  toolFailure: 'Sorry, I could not finish that: {tool} failed.',
  runTimeout: 'Sorry, that took too long and I had to stop.',
  restartGaveUp:
    'Sorry, I was interrupted three times while working on this and gave up. Please send it again.',
  modelBusy: 'The model is busy right now. I keep trying.',
  modelUnavailable: 'I cannot reach the model at the moment. Please try again later.',
  modelFailed: 'The model could not take this request. My owner finds the reason in the log.',
  modelUnsendable: "I couldn't send this conversation to the model. Send /new to start a fresh one.",
  modelOverflow: 'This conversation has grown too long for the model. /new begins a fresh one.',
  modelDeclined: 'The model declined to answer that.',
  answerEmpty: 'The model returned an empty answer twice. Please ask again.',
  answerCut: 'My answer was cut off at its length limit. Ask me to continue.',
  answerCutEmpty: 'I reached the length limit before I could answer. Please ask for less at once.',
  loopGuard: 'I kept repeating the same step, so I stopped.',
  turnLimit: 'That took more steps than I may take at once, so I stopped.',
  queueWaiting: 'Got it. I will get to this after what I am working on.',
  queueFull:
    'I already have {waiting} messages waiting, so I did not take this one. Please send it again later.',
  queueDroppedOld: 'Too many messages are waiting, so I left out the oldest: “{excerpt}”.',
  queueSummarised: 'Many messages are waiting; I will read the {count} oldest as a summary.',
  commandTakesNoText: '/{name} takes no text. Send that on its own.',
  commandAlone: 'Use {command} on its own.',
  helpMenu: 'Show the commands',
  statusMenu: 'Show what I’m doing and what’s waiting',
  stopMenu: 'Stop the current answer and cancel what you sent after it',
  newMenu: 'Start a new conversation',
  queueMenu: 'Show or change what’s waiting while I’m working',
  subagentsMenu: 'Show or direct the sub-agents that work for me here',
  activationMenu: 'In a group: answer when mentioned, or always',
  linkMenu: 'Continue this conversation from another account of yours',
  pairMenu: 'For my owner: who may write to me',
  whoamiMenu: 'Show your id on this network and your permissions',
  startMenu: 'Say hello',
  greeting: 'Hello! I’m {agent}, an AI agent. Just write to me; /help shows the commands.',
  whoami: 'You are {ref}, here as {authority}.',
  whoamiAdmin: 'You are {ref}, here as {authority} and as an administrator of this group.',
  whoamiAgent: 'Agent: {agent}',
  whoamiSession: 'Session: {session}',
  statusAgent: 'Agent {agent}, model {model}',
  statusAccount: 'Account {account} ({bot})',
  statusWorking: 'Working for {seconds} s; {waiting} waiting.',
  statusNoSession: 'No conversation yet.',
  statusSession: 'Session: messages {messages}, tokens in the last call {tokens}, cost {cost}',
  activationUsage: 'Use /activation mention or /activation always.',
  activationAlways: 'I now answer every message here.',
  activationMention: 'I now answer here when I’m mentioned.',
  queueUnknownMode: '“{word}” isn’t a queue mode. Use one of {modes}, or reset.',
  queueUnknownSetting: '“{name}” isn’t a queue setting. Use debounce, quiet, cap or drop.',
  queueRepeated: '“{word}” sets the same thing twice. Keep one of them.',
  queueBadTime: '{name} needs a time like 500ms, 2s or 1m, not “{value}”.',
  queueLongTime: '{name} can be at most 10m.',
  queueBadCap: 'cap needs a whole number from 1 to {max}, not “{value}”.',
  queueBadDrop: 'drop needs one of {policies}, not “{value}”.',
  queueCancelUsage: 'Use /queue cancel and a number from /queue list, or /queue cancel all.',
  queuePromoteUsage: 'Use /queue promote and a number from /queue list.',
  queueEditUsage: 'Use /queue edit, a number from /queue list, and the new text.',
  queueSettings: 'Queue: {mode} debounce:{debounce}ms quiet:{quiet}ms cap:{cap} drop:{drop}',
  queueReset: 'Back to the settings of the configuration.',
  queueNamedHere: 'Set here with /queue: {names}.',
  queueOfConversation: 'Configured for this conversation: {names}.',
  queueOfChannel: 'Configured for {channel}: {names}.',
  queueOfAll: 'As everywhere: {names}.',
  itemsNone: 'Nothing waits.',
  itemsWaiting: '{count} waiting; /queue list shows them.',
  itemsHeading: '{count} waiting, in this order:',
  itemLine: '#{number} {sender}, {age}: {text}',
  itemIsAhead: 'put ahead',
  itemIsFetching: 'its files are being fetched',
  itemIsHeld: 'waits for the rest of it',
  itemIsCorrection: 'a correction',
  itemFile: '1 file',
  itemFiles: '{count} files',
  itemsMore: 'and {count} more.',
  itemsHint: '/queue cancel, promote or edit and the number change one of them.',
  itemCancelled: 'Cancelled #{number}: “{excerpt}”',
  itemsCancelled: 'Cancelled what waited: {count}.',
  itemCancelledTold: 'I will not answer this message of yours, as my owner has cancelled it: “{excerpt}”',
  itemPromoted: '#{number} comes next: “{excerpt}”',
  itemEdited: '#{number} now reads: “{excerpt}”',
  itemCorrected: 'I am working on #{number} already, so I take that as a correction.',
  itemWorking: 'I am working on #{number} already. Send /stop if I should stop.',
  itemTaken: 'I am working on #{number} already.',
  itemEnded: '#{number} does not wait any more: {outcome}.',
  itemUnknown: 'There is no #{number} here. /queue list shows what waits.',
  itemKept: '#{number} is a command: it keeps its words and its place, and can only be cancelled.',
  itemBehind: '#{number} stands behind a /new that waits, and stays there. Cancel the /new to change that.',
  childrenNone: 'No sub-agents here.',
  childrenHint: 'Use /subagents info, log, steer or stop plus the id.',
  childLine: '{id} “{name}”: {state}',
  childQueued: 'queued',
  childRunning: 'running for {seconds} s',
  childEnd: '{end} in {seconds} s, tokens: {tokens}',
  childDone: 'done',
  childFailed: 'failed',
  childTimedOut: 'timed out',
  childWasStopped: 'stopped',
  childLost: 'lost',
  childInfo: 'Agent {agent}, depth {depth}, tokens: {tokens}, cost {cost}',
  childNoLog: '“{name}” ({id}) hasn’t said anything yet.',
  childStopped: 'I’m stopping “{name}” ({id}).',
  childSteered: 'I’ve passed that on to “{name}” ({id}).',
  childEnded: '“{name}” ({id}) has already ended. /subagents info {id} shows how.',
  childUnknown: 'There’s no sub-agent “{which}” here. /subagents lists them.',
  childSeveral: 'Several sub-agents begin with “{which}”. Use more letters of the id.',
  childUsage: 'Use /subagents {verb} and an id from /subagents list.',
  childSteerUsage: 'Use /subagents steer, an id from /subagents list, and your message.',
  childUnknownVerb: '/subagents can’t “{verb}”. Use list, info, log, steer or stop.',
  whoStops: 'an admin, or the person who started it,',
  whoCancels: 'the sender, an admin or my owner',
  whoPromotes: 'an admin or my owner',
  whoEdits: 'the sender or my owner',
  stopped: 'Stopped.',
  nothingToStop: 'Nothing is running.',
  stopOffer: 'You deleted the message I am working on. Send /stop if I should stop.',
  newSession: 'New conversation. I have put the earlier one aside.',
  dmNotAllowed:
    'Sorry, I do not take direct messages from people I do not know. My owner can let you in by your id: {id}',
  groupNotAllowed:
    'I am not set up for this group. To have me here, add “{id}” to access.allowGroups in parley.config.json and start me again.',
  pairingCode:
    'I do not know you yet. Ask my owner to approve this code: {code} (valid for {minutes} minutes).',
  pairingApproved: 'My owner has let you in. Please send me your message again.',
  pairingDone: '{who} may write to me now.',
  pairingAsked: '{who} asks to write to me. To let them in, send: /pair approve {code}',
  pairingConfirm: '{who} is asking for access. To let them in, send: /pair confirm {code}',
  pairingUnasked:
    'There’s nothing to confirm here. Send /pair approve with the code first, and I’ll tell you whom it lets in.',
  startCodeHint: 'Was that code for linking another account of yours? Then send: /link {code}',
  pairUsage:
    'Use /pair list, /pair approve and a code, /pair confirm and a code, or /pair revoke channel:id.',
  pairCodeUsage: 'Use /pair {verb} and the code of 8 letters and digits that the person was shown.',
  pairRevokeUsage: 'Use /pair revoke channel:id; /pair list shows the ids.',
  pairListEmpty: 'No requests, nobody approved.',
  pairListRequest: 'asks: {who} at {account}, minutes left: {minutes}',
  pairListPerson: '{role}: {who} at {account}, since {since} by {by}',
  pairingUnknown: 'Nobody waits with that code. It may have expired; then the person gets a new one.',
  pairingLimited: 'That were many codes within a minute. Please wait a minute and try again.',
  pairingRevoked: '{who} may not write to me any more.',
  pairingNobody: '{who} was not let in by a code.',
  pairingStillNamed: '{who} is named in the configuration and is let in by it.',
  linkUsage: 'Use /link to get a code, /link and a code to use it, /link list, or /link remove channel:id.',
  linkRemoveUsage: 'Use /link remove channel:id; /link list shows the ids.',
  linkThisOne: 'this one',
  linkByConfiguration: 'by the configuration',
  linkCode:
    'Send this from your other account, in a direct message to me, within {minutes} minutes:\n/link {code}\nWhoever sends it goes on in this conversation as you, so show it to nobody.',
  linkCodeGone: '(A code to link accounts was shown here. It is of no use any more.)',
  linkConfirm:
    'This would join this account and {other} into one conversation, with the lower permissions of the two. If both accounts are yours, send: /link confirm {code}',
  linkUnasked:
    'There’s nothing to confirm here. Send /link with the code first, and I’ll tell you whom it joins.',
  linkDone:
    'This account is linked with {other}: both are one conversation from now on, and each answer goes where its question came from. What was said here before stays on record. /link list shows the accounts, /link remove takes one out.',
  linkTold:
    '{other} is now linked with this account, and both share one conversation. If that wasn’t you, send: /link remove {ref}',
  linkLowered:
    'The two accounts have different rights. What you ask in the conversation they share has the lesser rights of the two; my owner can give both the same in the configuration.',
  linkWrong: 'That is no code that holds. Ask for one with /link from your other account.',
  linkTooMany: 'Those were too many codes. Please wait ten minutes and try again.',
  linkSelf: 'You have asked for that code from this very account. Send it from your other one.',
  linkAlready: 'This account is linked with {other} already.',
  linkElsewhere:
    'Both accounts are linked with others already. Take one of them out with /link remove first.',
  linkOnlyDirect:
    'Accounts are linked in a direct conversation with me. A code that was shown here is of no use any more.',
  linkNone: 'This account is linked with no other. /link gives you a code for that.',
  linkList: 'These accounts are one person to me:',
  linkRemoved: '{other} is not linked any more.',
  linkLeft: 'This account is not linked any more. What you write here is a conversation of its own again.',
  linkCutOff: '{other} has taken this account out. What you write here is a conversation of its own again.',
  linkNotLinked: '{other} is not linked with this account.',
  linkConfigured: 'The configuration links {other}; my owner can change that under identityLinks.',
  notPermitted: 'Only {who} may do that.',
  rateLimited: 'That is too many messages at once. Please wait {seconds} seconds.',
  deliveryUnknown: 'I cannot tell whether my last message arrived.',
  ownerChannelDown:
    '{subject} is down: {reason}. What people write there meanwhile waits, as far as the network keeps it.',
  ownerChannelBack: '{subject} is back.',
  ownerChannelUnauthorised:
    '{subject} refuses my credentials: {reason}. I try again every few minutes; if you renew them, start me again.',
  ownerChannelChallenge: '{subject} wants to know whether I am a person, and takes nothing from me: {reason}',
  ownerLaneStuck:
    'Something has waited for {seconds} s in {subject}, and nobody works on it. I keep trying; the log may say why.',
  ownerLaneMoves: '{subject} goes on.',
  ownerDeliveryUnknown:
    'I cannot tell whether a message of mine in {subject} arrived. “parley outbox list” shows it, to be sent again or dropped.',
  ownerDeliveriesUnknown:
    'I cannot tell whether {count} messages of mine in {subject} arrived. “parley outbox list” shows them, to be sent again or dropped.',
  ownerDeliveryWaits:
    'The network has held back messages to {subject} since {since}, and now says to wait until {until}. I try again every five minutes.',
  ownerDeliveryGoesOn: 'Messages to {subject} are going out again.',
  ownerEventsMissed: 'Messages in {subject} may have been missed and cannot be fetched: {reason}.',
  ownerConversationMoved:
    '{subject} has a new id, {to}. Its session, its settings and what waited to be sent went along.',
  ownerConversationUnreachable:
    'I cannot write in {subject} any more: I was blocked or removed. What waited for it has ended.',
  ownerRepeated: '{text} ({count} times)',
} as const;

/** The key of a notice. */
export type NoticeKey = keyof typeof english;
/** Every text of Parley in chat, by key. */
export type Notices = Readonly<Record<NoticeKey, string>>;
/** For the `{name}`s in a text. */
export type NoticeValues = Readonly<Record<string, unknown>>;

const german: Partial<Notices> = {
  internalFailure: 'Entschuldigung, bei mir ist etwas schiefgegangen. Bitte versuche es noch einmal.',
  toolFailure: 'Entschuldigung, das konnte ich nicht zu Ende bringen: {tool} ist fehlgeschlagen.',
  runTimeout: 'Entschuldigung, das hat zu lange gedauert; ich musste aufhören.',
  restartGaveUp:
    'Entschuldigung, ich wurde dabei dreimal unterbrochen und habe aufgegeben. Bitte sende es noch einmal.',
  modelBusy: 'Das Modell ist gerade ausgelastet. Ich versuche es weiter.',
  answerEmpty: 'Das Modell hat zweimal leer geantwortet. Bitte frag noch einmal.',
  answerCut: 'Meine Antwort wurde an der Höchstlänge abgeschnitten. Sag mir, dass ich fortfahren soll.',
  answerCutEmpty:
    'Ich habe die Höchstlänge erreicht, bevor ich antworten konnte. Bitte frag nach weniger auf einmal.',
  modelUnsendable: 'Ich konnte dieses Gespräch nicht an das Modell senden. Sende /new für ein neues.',
  modelUnavailable: 'Ich erreiche das Modell gerade nicht. Bitte versuche es später noch einmal.',
  queueWaiting: 'Verstanden. Das kommt nach dem, woran ich gerade arbeite.',
  queueFull:
    'Es warten schon {waiting} Nachrichten, deshalb habe ich diese nicht angenommen. Bitte sende sie später noch einmal.',
  queueReset: 'Es gilt wieder, was in der Konfiguration steht.',
  itemsNone: 'Es wartet nichts.',
  itemsWaiting: '{count} warten; /queue list zeigt sie.',
  itemsHeading: '{count} warten, in dieser Reihenfolge:',
  itemCancelled: 'Nr. #{number} ist zurückgenommen: „{excerpt}“',
  itemPromoted: '#{number} kommt als Nächstes: „{excerpt}“',
  itemEdited: '#{number} lautet jetzt: „{excerpt}“',
  itemWorking: 'An #{number} arbeite ich schon. Sende /stop, wenn ich aufhören soll.',
  stopped: 'Angehalten.',
  nothingToStop: 'Es läuft nichts.',
  newSession: 'Neues Gespräch. Das bisherige ist abgelegt.',
  dmNotAllowed:
    'Entschuldigung, ich nehme keine Direktnachrichten von Unbekannten an. Mein Besitzer kann dich mit deiner Kennung zulassen: {id}',
  pairingCode:
    'Ich kenne dich noch nicht. Bitte meinen Besitzer, diesen Code zu bestätigen: {code} (gilt {minutes} Minuten).',
  pairingApproved: 'Mein Besitzer hat dich zugelassen. Bitte schick mir deine Nachricht noch einmal.',
  pairingDone: '{who} darf mir jetzt schreiben.',
  pairingAsked: '{who} möchte mir schreiben. Zum Zulassen sende: /pair approve {code}',
  pairingConfirm: '{who} dürfte mir dann schreiben. Zum Zulassen sende: /pair confirm {code}',
  pairingUnasked:
    'Hier wartet nichts auf diese Bestätigung. Sende zuerst /pair approve und den Code; dann sage ich, wen er zulässt.',
  linkConfirm:
    'Damit würde aus diesem Konto und {other} ein gemeinsames Gespräch, mit den geringeren Rechten der beiden. Sind beide deine, sende: /link confirm {code}',
  linkUnasked:
    'Hier wartet nichts auf diese Bestätigung. Sende zuerst /link und den Code; dann sage ich, wen er verbindet.',
  linkDone:
    'Dieses Konto ist mit {other} verbunden: Beide sind ab jetzt ein Gespräch, und jede Antwort geht dorthin, woher ihre Frage kam. /link list zeigt die Konten, /link remove nimmt eines heraus.',
  linkTold:
    '{other} ist mit diesem Konto verbunden: Beide sind ab jetzt ein Gespräch, und jede Antwort geht dorthin, woher ihre Frage kam. Warst du das nicht? Sende: /link remove {ref}',
  pairingUnknown:
    'Mit diesem Code wartet niemand. Vielleicht ist er abgelaufen; dann bekommt die Person einen neuen.',
  pairingLimited: 'Das waren viele Codes in einer Minute. Bitte versuche es in einer Minute noch einmal.',
  pairingRevoked: '{who} darf mir nicht mehr schreiben.',
  pairingNobody: '{who} wurde nicht durch einen Code zugelassen.',
  pairingStillNamed: '{who} steht in der Konfiguration und ist durch sie zugelassen.',
  ownerChannelDown:
    '{subject} ist nicht erreichbar: {reason}. Was dort inzwischen geschrieben wird, wartet, soweit das Netz es aufhebt.',
  ownerChannelBack: '{subject} ist wieder da.',
  ownerChannelUnauthorised:
    '{subject} lehnt meine Zugangsdaten ab: {reason}. Ich versuche es alle paar Minuten; nach einer Erneuerung starte mich bitte neu.',
  ownerChannelChallenge:
    '{subject} will wissen, ob ich ein Mensch bin, und nimmt nichts von mir an: {reason}',
  ownerLaneStuck:
    'In {subject} wartet seit {seconds} s etwas, und niemand arbeitet daran. Ich versuche es weiter; der Grund steht vielleicht im Protokoll.',
  ownerLaneMoves: '{subject} geht weiter.',
  ownerDeliveryUnknown:
    'Ich weiß nicht, ob eine Nachricht von mir in {subject} angekommen ist. „parley outbox list“ zeigt sie; dort kann sie noch einmal gesendet oder verworfen werden.',
  ownerDeliveriesUnknown:
    'Ich weiß nicht, ob {count} Nachrichten von mir in {subject} angekommen sind. „parley outbox list“ zeigt sie; dort können sie noch einmal gesendet oder verworfen werden.',
  ownerDeliveryWaits:
    'Das Netz lässt mich mit dem, was ich für {subject} habe, seit {since} warten, jetzt bis {until}. Ich frage alle fünf Minuten wieder.',
  ownerDeliveryGoesOn: 'Was für {subject} wartete, ist wieder unterwegs.',
  ownerEventsMissed:
    'In {subject} sind vielleicht Nachrichten verloren gegangen, die sich nicht nachholen lassen: {reason}.',
  ownerConversationMoved:
    '{subject} hat eine neue Kennung, {to}. Sitzung, Einstellungen und Wartendes sind mitgezogen.',
  ownerConversationUnreachable:
    'In {subject} kann ich nicht mehr schreiben: Ich wurde gesperrt oder entfernt. Was dort wartete, ist beendet.',
  ownerRepeated: '{text} ({count} Mal)',
};

const languages: Readonly<Record<string, Partial<Notices>>> = { en: english, de: german };

/**
 * `language` is a BCP 47 tag; only its first part counts. Throws `config_invalid` when `overrides` names a
 * text that there is not.
 */
export function noticesFor(language: string, overrides: Readonly<Record<string, string>> = {}): Notices {
  const unknown = Object.keys(overrides).filter((name) => !Object.hasOwn(english, name));
  if (unknown.length > 0)
    throw new ParleyError(
      'config_invalid',
      `texts: there is no text named ${unknown.join(', ')}; use one of: ${Object.keys(english).join(', ')}`,
    );
  const primary = language.toLowerCase().split('-')[0] ?? 'en';
  return { ...english, ...languages[primary], ...overrides };
}

/** Fills in `{name}`; a name without a value stays as it is, so that a wrong override is seen. */
export function fillNotice(text: string, values: NoticeValues = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? String(values[name]) : whole,
  );
}
