import type { Mutant } from './mutants.ts';

const liveness = 'test/channels/discord/liveness.test.ts';
const receiving = 'test/channels/discord/receiving.test.ts';
const backfill = 'test/channels/discord/backfill.test.ts';
const sending = 'test/channels/discord/sending.test.ts';
const interactions = 'test/channels/discord/interactions.test.ts';
const media = 'test/channels/discord/media.test.ts';
const corpus = 'test/inputs/discord/corpus.test.ts';
const mutations = 'test/inputs/discord/mutations.test.ts';

/** Broken variants of the channel whose gateway forgets events, so that its history is read instead. */
export const discordMutants: readonly Mutant[] = [
  {
    name: 'each report of a guild is news',
    invariant: 'the owner is asked once about a guild that has added the bot',
    edit: { in: 'readJoining', find: 'cleanText(joinedAt)', replace: 'receivedAt' },
    test: { file: backfill, name: 'that adds the bot is told once' },
  },
  {
    name: 'what was read between two sessions is believed',
    invariant: 'after a lost session everything said before the new one is read',
    edit: { in: 'Receiver', find: 'this.#sessionChanged();', replace: '' },
    test: { file: receiving, name: 'reads again what was read before it began' },
  },
  {
    name: 'the ready deadline never fires',
    invariant: 'a session that is never answered is dropped, and a new one is asked for',
    edit: {
      in: 'GatewaySocket',
      find: 'await waitUntil(clock, dialledAt + standingPatienceMs, this.#over.signal);',
      replace: 'await waitUntil(clock, Number.POSITIVE_INFINITY, this.#over.signal);',
    },
    test: { file: liveness, name: 'the answer to a resume is identified to anew' },
  },
  {
    name: 'an outage counts against the address of the session',
    invariant: 'behind an outage the session is resumed, and tells what happened meanwhile',
    edit: {
      in: 'Gateway',
      find: "session === 'kept' && !(await this.#isAddressGone())",
      replace: "session === 'kept' && this.#resumes < mostResumes",
    },
    test: { file: liveness, name: 'behind an outage in which every attempt is refused' },
  },
  {
    name: 'a frame goes to the library unread',
    invariant: 'no frame of the gateway ends the process or moves the bot',
    edit: {
      in: 'GatewaySocket',
      find: 'const frame = readFrame(text);',
      replace: 'const frame = readFrame(text) === undefined ? (JSON.parse(text) as Frame) : readFrame(text);',
    },
    test: { file: liveness, name: 'changes nothing' },
  },
  {
    name: 'live events before what was missed',
    invariant: 'while a conversation is read its live events wait',
    edit: {
      in: 'History',
      find: 'if (this.#live.has(channelId)) { void this.#store',
      replace: 'if (channelId !== undefined) { this.#fill(channelId); void this.#store',
    },
    test: { file: backfill, name: 'its live events wait behind what was missed' },
  },
  {
    name: 'one page of history',
    invariant: 'history is read to its end, however long it is',
    edit: {
      in: 'History',
      find: 'isMore = page.length === limit;',
      replace: 'isMore = page.length > limit;',
    },
    test: { file: backfill, name: 'is handed over once and in order, page by page' },
  },
  {
    name: 'the floor moves while a guild is away',
    invariant: 'the cursor passes nothing that may have been missed',
    edit: { in: 'Receiver', find: '&& this.#awaitedGuilds.size === 0 && ', replace: '&& ' },
    test: { file: backfill, name: 'loses nothing of a channel that was never heard of before' },
  },
  {
    name: 'what was read of a guild that is away is believed',
    invariant: 'a guild is read again once events come from it',
    edit: {
      in: 'Receiver',
      find: 'if (this.#awaitedGuilds.delete(guildId)) this.#history.untold(this.#channelsOf(guildId));',
      replace: 'this.#awaitedGuilds.delete(guildId);',
    },
    test: { file: backfill, name: 'until later loses nothing of a channel that was known' },
  },
  {
    name: 'a stranger forgotten in a crash',
    invariant: 'a direct conversation is known before its first message is handed over',
    edit: {
      in: 'History',
      find: "if (place.chat.kind === 'dm') await contacts.add(channelId, after);",
      replace: 'void contacts;',
    },
    test: { file: receiving, name: 'found again after a crash before its first message was stored' },
  },
  {
    name: 'a send without enforce_nonce',
    invariant: 'a send that is repeated stands once',
    edit: {
      in: 'DiscordApi',
      find: 'const options = { body, signal,',
      replace: 'const options = { body: { ...body, enforce_nonce: false }, signal,',
    },
    test: { file: sending, name: 'whose answer was lost is repeated under its nonce' },
  },
  {
    name: 'the library repeats by itself',
    invariant: 'what may have been delivered is never repeated blindly',
    edit: { in: 'DiscordApi', find: 'retries: 0,', replace: 'retries: 3,' },
    test: { file: sending, name: 'is made once when it is answered 502, and its fate is unknown' },
  },
  {
    name: 'a form of the library’s own goes to whichever client is loaded',
    invariant: 'a file is sent whatever other channels are on',
    edit: { in: 'makeRequest', find: 'await withBytes(init)', replace: 'init' },
    test: { file: sending, name: 'is sent where Signal’s HTTP client is loaded too' },
  },
  {
    name: 'a quote that pings',
    invariant: 'no text of ours pings anybody',
    edit: {
      in: 'noMentions',
      find: 'const noMentions = { parse: [], replied_user: false } as const;',
      replace: 'const noMentions = { parse: [], replied_user: true } as const;',
    },
    test: { file: sending, name: 'and an edit ping nobody' },
  },
  {
    name: 'a command acknowledged when it is stored',
    invariant: 'an interaction has its first answer within 3 seconds, whatever the store does',
    edit: {
      in: 'Interactions',
      find: 'const isDeferred = this.#defer({ id, token }, InteractionResponseType.DeferredChannelMessageWithSource);',
      replace:
        'const isDeferred = this.#deps.clock.wait(60_000).then(() => this.#defer({ id, token }, InteractionResponseType.DeferredChannelMessageWithSource));',
    },
    test: { file: interactions, name: 'is acknowledged before the store has it' },
  },
  {
    name: 'a part that reads like the one before is taken for it',
    invariant: 'every part of an answer is sent',
    edit: {
      in: 'Interactions',
      find: "if (one.isWithdrawn || (one.answer !== undefined && one.answer !== reply.key)) return { kind: 'taken' };",
      replace:
        "if (one.isWithdrawn || (one.answer !== undefined && one.answer !== reply.key)) return { kind: 'unknown' };",
    },
    test: { file: interactions, name: 'is acknowledged before the store has it' },
  },
  {
    name: 'a private thread that is locked is answered in its channel',
    invariant: 'what was said in private stays there',
    edit: {
      in: 'Sender',
      find: 'type === ChannelType.PrivateThread',
      replace: 'type === ChannelType.DM',
    },
    test: { file: sending, name: 'to the channel only where everybody could read the thread' },
  },
  {
    name: 'an answer of another process taken away with its place',
    invariant: 'what was delivered stays',
    edit: {
      in: 'Interactions',
      find: 'if (isThinking) await api.removeOriginal(one.application, one.token);',
      replace: 'await api.removeOriginal(one.application, one.token);',
    },
    test: { file: interactions, name: 'that another process of the folder has answered keeps its answer' },
  },
  {
    name: 'a refusal of Discord’s edge is final',
    invariant: 'only Discord’s own word ends the reading of a history',
    edit: {
      in: 'readRefusal',
      find: 'isUnrouted(status, named) ? undefined : named',
      replace: 'isUnrouted(status, named) ? 0 : named',
    },
    test: { file: backfill, name: 'of Discord’s edge, and comes behind it' },
  },
  {
    name: 'a history that a filter refuses is asked for without end',
    invariant: 'no refusal of one history holds up its conversation for ever',
    edit: { in: 'History', find: '(isFinal || turnedAway >= mostTurnedAway)', replace: 'isFinal' },
    test: { file: backfill, name: 'is given up with a gap once Discord answers all else' },
  },
  {
    name: 'an outage counts as a filter',
    invariant: 'what is turned away with all else waits for as long as that lasts',
    edit: {
      in: 'Sender',
      find: '!isBlockedUpstream(refusal) || !(await this.#deps.api.answers(signal))',
      replace: '!isBlockedUpstream(refusal) || signal.aborted',
    },
    test: { file: sending, name: 'that something before Discord refuses time and again' },
  },
  {
    name: 'a preview of a link is an edit',
    invariant: 'only an update with a time of editing is an edit',
    edit: {
      in: 'readEdit',
      find: 'edited_timestamp: editedAt,',
      replace: "edited_timestamp: editedAt = '',",
    },
    test: { file: corpus, name: 'a preview that Discord has found for a link' },
  },
  {
    name: 'an edit that names no words takes them away',
    invariant: 'an edit without content erases nothing',
    edit: {
      in: 'editOf',
      find: "if (typeof content !== 'string') return { ...head, text: '', ...unread };",
      replace: '',
    },
    test: { file: corpus, name: 'an edit whose words are null' },
  },
  {
    name: 'an edit that names no files takes them away',
    invariant: 'an edit without content erases nothing',
    edit: { in: 'editOf', find: '...(areFilesRead && { attachments })', replace: 'attachments' },
    test: { file: corpus, name: 'as they were after an edit that does not name its files' },
  },
  {
    name: 'a file is fetched from wherever a message says',
    invariant: 'files are asked for on Discord’s hosts alone',
    edit: { in: 'download', find: 'if (!isDiscord) throw', replace: "if (url === '') throw" },
    test: { file: media, name: 'is asked for nowhere but on Discord’s hosts' },
  },
  {
    name: 'the picture of a card is fetched from wherever the card says',
    invariant: 'files are asked for on Discord’s hosts alone',
    edit: { in: 'picturesOf', find: '&& !isDiscordFile(url)', replace: "&& url === ''" },
    test: { file: corpus, name: 'a picture on another server, of which Discord has no copy' },
  },
  {
    name: 'a broken field costs the message',
    invariant: 'a field that is null, absent or moved makes a message poorer, never unreadable',
    edit: { in: 'soft', find: '.optional().catch(undefined)', replace: '.optional()' },
    test: { file: mutations, name: 'not when another member is of another type' },
  },
  {
    name: 'a broken element costs its list',
    invariant: 'a field that is null, absent or moved makes a message poorer, never unreadable',
    edit: { in: 'softList', find: 'read.success ? [read.data] : []', replace: '[element.parse(each)]' },
    test: { file: corpus, name: 'a list of files of which one cannot be read' },
  },
  {
    name: 'a thread begins without the message that it hangs on',
    invariant: 'a thread sees its starter',
    edit: {
      in: 'quotingTypes',
      find: 'MessageType.ThreadStarterMessage',
      replace: 'MessageType.ThreadCreated',
    },
    test: { file: corpus, name: 'the beginning of a thread on a text' },
  },
  {
    name: 'a message of which nothing can be read is said nothing of',
    invariant: 'no message vanishes: it is read or refused by name',
    edit: {
      in: 'eventOf',
      find: 'if (!hasContent && content.unknownFields === undefined) return refused(message, emptyReason);',
      replace: '',
    },
    test: { file: corpus, name: 'without the content that only Message Content brings' },
  },
  {
    name: 'nobody is told of fields that Parley does not know',
    invariant: 'a message of unknown fields alone names them',
    edit: { in: 'readBody', find: 'unknownFields: unknownIn(raw)', replace: 'unknownFields: []' },
    test: { file: corpus, name: 'nothing but a field that nobody knows' },
  },
  {
    name: 'a card speaks in the sender’s name',
    invariant: 'only what somebody typed can be an order',
    edit: {
      in: 'wordsOf',
      find: 'text: cleanText(text),',
      replace: "text: cleanText([text, ...lines].join('\\n').trim()),",
    },
    test: { file: corpus, name: 'a card without words' },
  },
];
