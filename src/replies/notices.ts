/**
 * Every text that Parley itself says to people, in one table. `{name}` is filled in. An owner may
 * override any of them in the configuration; what a language lacks falls back to English.
 */

const english = {
  internalFailure: 'Sorry, something went wrong on my side. Please try again.',
  toolFailure: 'Sorry, I could not finish that: {tool} failed.',
  runTimeout: 'Sorry, that took too long and I had to stop.',
  restartGaveUp:
    'Sorry, I was interrupted three times while working on this and gave up. Please send it again.',
  modelBusy: 'The model is busy right now. I keep trying.',
  modelUnavailable: 'I cannot reach the model at the moment. Please try again later.',
  modelFailed: 'The model could not take this request. My owner finds the reason in the log.',
  modelOverflow: 'This conversation has grown too long for the model. /new begins a fresh one.',
  modelDeclined: 'The model declined to answer that.',
  loopGuard: 'I kept repeating the same step, so I stopped.',
  turnLimit: 'That took more steps than I may take at once, so I stopped.',
  queueWaiting: 'Got it. I will get to this after what I am working on.',
  queueFull:
    'I already have {waiting} messages waiting, so I did not take this one. Please send it again later.',
  queueDroppedOld: 'Too many messages are waiting, so I left out the oldest: “{excerpt}”.',
  queueSummarised: 'Many messages are waiting; I will read the {count} oldest as a summary.',
  overflowSummaryHeading: '{count} older messages, shortened because too many were waiting:',
  stopped: 'Stopped.',
  stoppedWithWaiting: 'Stopped. {count} waiting messages were cancelled.',
  nothingToStop: 'Nothing is running.',
  stopOffer: 'You deleted the message I am working on. Send /stop if I should stop.',
  newSession: 'New conversation. I have put the earlier one aside.',
  attachmentMissing: 'I could not fetch the attachment “{name}”: {reason}.',
  attachmentTooLarge: 'The attachment “{name}” is larger than {limitMb} MB, so I did not take it.',
  messageUnreadable: 'I could not read that message.',
  dmNotAllowed:
    'Sorry, I do not take direct messages from people I do not know. My owner can let you in by your id: {id}',
  groupNotAllowed:
    'I am not set up for this group. To have me here, add “{id}” to access.allowGroups in parley.config.json and start me again.',
  pairingCode:
    'I do not know you yet. Ask my owner to approve this code: {code} (valid for {minutes} minutes).',
  pairingApproved: 'You are approved. Hello!',
  notPermitted: 'Only {who} may do that.',
  rateLimited: 'That is too many messages at once. Please wait {seconds} seconds.',
  budgetSpent: 'The budget for {period} is spent, so I cannot answer until it is renewed.',
  approvalAsked: 'May I run this? {summary}\n/approve {id} or /deny {id}',
  approvalExpired: 'Nobody approved “{summary}” in time, so I did not do it.',
  deliveryUnknown: 'I cannot tell whether my last message arrived.',
} as const;

export type NoticeKey = keyof typeof english;
export type Notices = Readonly<Record<NoticeKey, string>>;

const german: Partial<Notices> = {
  internalFailure: 'Entschuldigung, bei mir ist etwas schiefgegangen. Bitte versuche es noch einmal.',
  toolFailure: 'Entschuldigung, das konnte ich nicht zu Ende bringen: {tool} ist fehlgeschlagen.',
  runTimeout: 'Entschuldigung, das hat zu lange gedauert; ich musste aufhören.',
  restartGaveUp:
    'Entschuldigung, ich wurde dabei dreimal unterbrochen und habe aufgegeben. Bitte sende es noch einmal.',
  modelBusy: 'Das Modell ist gerade ausgelastet. Ich versuche es weiter.',
  modelUnavailable: 'Ich erreiche das Modell gerade nicht. Bitte versuche es später noch einmal.',
  queueWaiting: 'Verstanden. Das kommt nach dem, woran ich gerade arbeite.',
  queueFull:
    'Es warten schon {waiting} Nachrichten, deshalb habe ich diese nicht angenommen. Bitte sende sie später noch einmal.',
  stopped: 'Angehalten.',
  nothingToStop: 'Es läuft nichts.',
  newSession: 'Neues Gespräch. Das bisherige ist abgelegt.',
  attachmentMissing: 'Ich konnte den Anhang „{name}“ nicht laden: {reason}.',
  dmNotAllowed:
    'Entschuldigung, ich nehme keine Direktnachrichten von Unbekannten an. Mein Besitzer kann dich mit deiner Kennung zulassen: {id}',
  pairingCode:
    'Ich kenne dich noch nicht. Bitte meinen Besitzer, diesen Code zu bestätigen: {code} (gilt {minutes} Minuten).',
};

const languages: Readonly<Record<string, Partial<Notices>>> = { en: english, de: german };

/** `language` is a BCP 47 tag; only its first part counts. */
export function noticesFor(language: string, overrides: Partial<Notices> = {}): Notices {
  const primary = language.toLowerCase().split('-')[0] ?? 'en';
  return { ...english, ...languages[primary], ...overrides };
}

/** Fills in `{name}`; a name without a value stays as it is, so that a wrong override is seen. */
export function fillNotice(text: string, values: Readonly<Record<string, string | number>> = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? String(values[name]) : whole,
  );
}
