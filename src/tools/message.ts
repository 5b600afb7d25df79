import { resolve } from 'node:path';
import { z } from 'zod';
import type { Capabilities } from '#contracts/capabilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { defineTool, type Tool, type ToolContext, type ToolOutput, type ToolRun } from '#contracts/tool.ts';
import { hookRunOf } from '../hooks/hook-run.ts';
import type { Hooks } from '../hooks/hooks.ts';
import { prepareMessage } from '../hooks/prepare-message.ts';
import type { ToolSender } from '../outbox/tool-sender.ts';
import { captioned, type FileToSend, mediaMessages } from '../replies/media-messages.ts';
import { judgeWritten } from '../replies/reply-pipeline.ts';
import type { TextShaper } from '../replies/text-shaper.ts';
import { copyOutgoing, type OutgoingFile, type OutgoingFilesDeps } from './outgoing-files.ts';
import { callOf, readReference, refused, type SendEnd, sendParts, withoutEmpty } from './send-parts.ts';

export type MessageToolDeps = OutgoingFilesDeps & {
  readonly toolSender: ToolSender;
  readonly shaper: TextShaper;
  readonly hooks?: Hooks | undefined;
  capabilitiesFor(route: ReplyRoute): Capabilities | undefined;
  /** Returns where a message to the lane goes; undefined if nobody has ever written there. */
  routeTo(laneKey: string): Promise<ReplyRoute | undefined>;
};

/**
 * Creates the tool that sends a message while the run continues. Its effect is one transaction under the call's own
 * key, so a call repeated after a crash re-attaches to the message it created.
 */
export function createMessageTool(deps: MessageToolDeps, run: ToolRun): Tool {
  return defineTool<MessageAction>({
    name: 'message',
    description:
      'Send a message now, before your final answer: to this conversation, or to another one by its session key. ' +
      'Or react to a message with an emoji, edit or delete one of your own. ' +
      'Do not repeat in your answer what you sent with it; answer NO_REPLY if nothing is left to say.',
    inputSchema: messageInput,
    prepareArguments: withoutEmpty,
    parallelSafe: false,
    replay: 'durable',
    authority: 'guest',
    execute: async (action, ctx) => {
      const place = await openPlace(deps, run, action);
      const call = { ...deps, ...place, run, ctx };
      switch (action.action) {
        case 'send':
          return send(call, action);
        case 'react':
          return react(call, action);
        case 'edit':
          return edit(call, action);
        case 'delete':
          return remove(call, action);
        default:
          return action satisfies never;
      }
    },
  });
}

/** Where the call speaks. */
type Place = {
  readonly route: ReplyRoute;
  /** Another session to speak in. */
  readonly toLane: string | undefined;
  /** Undefined while the network there isn't connected. */
  readonly abilities: Capabilities | undefined;
};

async function openPlace(
  deps: MessageToolDeps,
  run: ToolRun,
  { to }: Pick<MessageAction, 'to'>,
): Promise<Place> {
  const toLane = to === run.sessionKey ? undefined : to;
  if (toLane !== undefined && run.authority !== 'owner')
    throw refused('Only the owner may have messages sent to other conversations.');
  if (run.route === undefined) throw refused('This turn has no conversation to send to; answer in text.');
  const route = withoutQuote(run.route);
  // The other conversation may be on a network that takes less.
  const speaksIn = toLane === undefined ? route : await deps.routeTo(toLane);
  return { route, toLane, abilities: speaksIn && deps.capabilitiesFor(speaksIn) };
}

type Call = MessageToolDeps & Place & { readonly run: ToolRun; readonly ctx: ToolContext };

type ActionOf<Name extends MessageAction['action']> = Extract<MessageAction, { action: Name }>;

async function send(call: Call, action: ActionOf<'send'>): Promise<ToolOutput> {
  const { run, ctx, abilities } = call;
  const silence = judgeWritten(action.text ?? '', ['chat']);
  const { files: paths = [] } = action;
  if (silence.kind === 'silent' && paths.length === 0)
    return { text: 'Nothing was sent: this text asks for silence.' };
  const isRepeat = ctx.isRepeat === true && (await call.toolSender.isPosted(callOf(call)));
  // After a restart, the network of a message that was stored before may not be connected yet.
  if (paths.length > 0 && !isRepeat && !abilities?.media) throw unsupported('take files from me');
  const written = silence.kind === 'silent' ? '' : silence.text;
  const quotes = action.replyTo === undefined || isRepeat ? undefined : quotedBy(call, action.replyTo);
  const text = isRepeat ? written : await askHooks(call, written);
  // A message stored by an earlier attempt stays unchanged, whatever has happened to its files.
  const { asVoice = false } = action;
  const { contents, note } = isRepeat ? nothing : await contentsOf(call, { text, paths, asVoice });
  const end = await sendParts(call, { contents, ...(quotes !== undefined && { quotes }) });
  if (end.state === 'failed') throw refused(failureOf(end));
  const media = paths.map((path) => resolve(run.workspace, path));
  const sent = { state: end.state, route: end.route, text, media };
  const says = end.state === 'sent' ? `Sent${idsOf(call, end)}.` : notKnown;
  return { text: `${says}${note}`, metadata: { sent, messageIds: end.receipts } };
}

/** Returns the text as hooks have left it. Throws for the model to read if one has cancelled it. */
async function askHooks({ hooks, run, route }: Call, text: string): Promise<string> {
  if (text === '') return text;
  const prepared = await prepareMessage(hooks, { source: 'tool', run: hookRunOf(run), route, text });
  if (prepared.kind === 'send') return prepared.text;
  throw refused(`Not sent: ${prepared.reason} (hook ${prepared.by})`);
}

type Written = { readonly text: string; readonly paths: readonly string[]; readonly asVoice: boolean };

/** `note`: what the model should know about how files were sent; empty if nothing. */
type Contents = { readonly contents: readonly OutboundContent[]; readonly note: string };

const nothing: Contents = { contents: [], note: '' };

/** Builds the contents: the text, or a caption, and the files. */
async function contentsOf(call: Call, { text, paths, asVoice }: Written): Promise<Contents> {
  const { shaper, abilities, run, ctx } = call;
  const limits = abilities?.text ?? { maxLength: 2000 };
  const texts = text.trim() === '' ? [] : await shaper.shape(text, limits);
  if (texts.length + paths.length === 0) throw refused('There is nothing to send in this text.');
  const maxBytes = abilities?.media?.maxBytes ?? 0;
  const copies =
    paths.length === 0 ? [] : await copyOutgoing(call, { run, paths, maxBytes, signal: ctx.signal });
  const files = copies.map(
    ({ isOggOpus, ...file }): FileToSend => (asVoice && isOggOpus ? { ...file, asVoice } : file),
  );
  const contents = captioned(texts, mediaMessages(files, abilities?.media), { ...abilities, text: limits });
  return { contents, note: asVoice && copies.length > 0 ? voiceNote(copies, abilities) : '' };
}

function voiceNote(files: readonly OutgoingFile[], abilities: Capabilities | undefined): string {
  if (abilities?.media?.voice === undefined)
    return ' As a file: this network takes no voice messages from me.';
  const others = files.filter(({ isOggOpus }) => !isOggOpus).map(({ name }) => name);
  return others.length === 0
    ? ''
    : ` Not as voice messages, because they aren't Ogg Opus: ${others.join(', ')}.`;
}

function quotedBy({ abilities, run, toLane }: Call, named: string): MessageId {
  if (!abilities?.canQuote) throw unsupported('show which message another one answers');
  return readReference(named, { run, toLane });
}

async function react(call: Call, { message, emoji }: ActionOf<'react'>): Promise<ToolOutput> {
  if (!call.abilities?.canReact) throw unsupported('show reactions');
  return change(call, { kind: 'reaction', messageId: readReference(message, call), emoji });
}

async function edit(call: Call, { message, text: written }: ActionOf<'edit'>): Promise<ToolOutput> {
  const { shaper, abilities } = call;
  if (!abilities?.canEdit) throw unsupported('change a message that was sent');
  const silence = judgeWritten(written, ['chat']);
  const said = silence.kind === 'silent' ? '' : await askHooks(call, silence.text);
  const texts = said === '' ? [] : await shaper.shape(said, abilities.text);
  const [text, ...more] = texts;
  if (text === undefined) throw refused('There is nothing to show in this text; delete removes a message.');
  if (more.length > 0)
    throw refused(`The text does not fit into one message (${abilities.text.maxLength} characters).`);
  return change(call, { kind: 'edit', messageId: readReference(message, call), text });
}

async function remove(call: Call, { message }: ActionOf<'delete'>): Promise<ToolOutput> {
  const { abilities } = call;
  if (!abilities?.canDelete) throw unsupported('remove a message that was sent');
  return change(call, { kind: 'delete', messageId: readReference(message, call) });
}

/** A change of an existing message. It says nothing, so no answer repeats it. */
async function change(call: Call, content: OutboundContent): Promise<ToolOutput> {
  const changesOwnOnly = call.run.authority === 'guest';
  const end = await sendParts(call, { contents: [content], changesOwnOnly });
  if (end.state === 'failed') throw refused(`It was not done: ${end.problem ?? 'the network refused it'}`);
  const says = end.state === 'sent' ? 'Done.' : 'It is on its way; whether it was done is not known yet.';
  return { text: says };
}

const notKnown = 'It is on its way; whether it arrived is not known yet.';

/** Where a message can be referred to later, by what. */
function idsOf({ abilities }: Call, { receipts }: SendEnd): string {
  if (!abilities?.canQuote && !abilities?.canEdit) return '';
  if (receipts.length === 0) return '';
  return receipts.length === 1 ? ` as message ${receipts[0]}` : ` as messages ${receipts.join(', ')}`;
}

/** Describes a failed send. The parts of a message are sent one after the other; after a text that failed, none is. */
function failureOf({ sentParts, allParts, problem = 'the network refused it' }: SendEnd): string {
  if (sentParts === 0) return `It was not delivered: ${problem}`;
  return `Only a part of it was delivered (${sentParts} of ${allParts} messages), but not the rest: ${problem}`;
}

function unsupported(what: string): ParleyError {
  return new ParleyError('not_supported', `The network of this conversation cannot ${what}.`);
}

/** A message on its network: an id, `current` (the one that the turn answers) or `last` (the agent's own newest). */
const reference = z.string().min(1).max(256);
const text = z.string().min(1).max(32_000);
const emoji = z.string().max(32).refine(isEmoji, 'one emoji, as a character');
const files = z.array(z.string().min(1).max(4096)).min(1).max(10);
const to = z.string().max(2_048).optional();

/** As providers take it: none takes a union at the top of a schema. */
const written = z.object({
  action: z.enum(['send', 'react', 'edit', 'delete']).default('send'),
  text: text.optional().describe('For send and edit: what to say, in Markdown.'),
  files: files
    .optional()
    .describe('For send: paths of workspace files to send along; pictures and videos become an album.'),
  asVoice: z
    .boolean()
    .optional()
    .describe('For send: whether Ogg Opus among the files is a voice message. Other files stay files.'),
  replyTo: reference
    .optional()
    .describe(
      'For send: the message to quote. A message is named by its id (sessions_history tells it); "current" is the one you answer, "last" your newest.',
    ),
  message: reference
    .optional()
    .describe('For react: the message to react to. For edit and delete: one of your own, such as "last".'),
  emoji: z.string().max(32).optional().describe('For react: one emoji, as a character.'),
  to: to.describe('Session key of another conversation (see sessions_list). Absent: this conversation.'),
});

const actions = z.discriminatedUnion('action', [
  z
    .strictObject({
      action: z.literal('send'),
      text: text.optional(),
      files: files.optional(),
      asVoice: z.boolean().optional(),
      replyTo: reference.optional(),
      to,
    })
    .refine((send) => send.text !== undefined || send.files !== undefined, 'a text or files are needed'),
  z.strictObject({ action: z.literal('react'), message: reference, emoji, to }),
  z.strictObject({ action: z.literal('edit'), message: reference, text, to }),
  z.strictObject({ action: z.literal('delete'), message: reference, to }),
]);

/** Arguments of the `message` tool. What an action doesn't take is refused. */
const messageInput = written.pipe(actions);

/** One thing to do with a message. */
type MessageAction = z.output<typeof messageInput>;

/** One that people's keyboards have, with or without the selector that makes an emoji of a sign. */
function isEmoji(text: string): boolean {
  return /^\p{RGI_Emoji}$/v.test(text) || /^\p{RGI_Emoji}$/v.test(`${text}\ufe0f`);
}
