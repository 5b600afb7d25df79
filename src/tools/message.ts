import { resolve } from 'node:path';
import type { Capabilities } from '#contracts/capabilities.ts';
import { ParleyError } from '#contracts/errors.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { type MessageId, messageId } from '#contracts/ids.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import { type ReplyRoute, withoutQuote } from '#contracts/route.ts';
import { defineTool, type Tool, type ToolContext, type ToolOutput, type ToolRun } from '#contracts/tool.ts';
import type { ToolSendEnd, ToolSender } from '../outbox/tool-sender.ts';
import { judgeWritten } from '../replies/reply-pipeline.ts';
import type { TextShaper } from '../replies/text-shaper.ts';
import type { ToolSendInput } from '../store/delivery/tool-send.ts';
import { type MessageAction, messageInput, withoutEmpty } from './message-input.ts';
import { copyOutgoing, type OutgoingFilesDeps } from './outgoing-files.ts';

export type MessageToolDeps = OutgoingFilesDeps & {
  readonly toolSender: ToolSender;
  readonly shaper: TextShaper;
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
  const silence = judgeWritten(action.text ?? '', 'chat');
  const { files: paths = [] } = action;
  if (silence.kind === 'silent' && paths.length === 0)
    return { text: 'Nothing was sent: this text asks for silence.' };
  if (paths.length > 0 && !abilities?.media) throw unsupported('take files from me');
  const text = silence.kind === 'silent' ? '' : silence.text;
  const quotes = action.replyTo === undefined ? undefined : quotedBy(call, action.replyTo);
  const isRepeat = ctx.isRepeat === true && (await call.toolSender.isPosted(callOf(call)));
  // A message stored by an earlier attempt stays unchanged, whatever has happened to its files.
  const contents = isRepeat ? [] : await contentsOf(call, { text, paths });
  const end = await sendParts(call, { contents, ...(quotes !== undefined && { quotes }) });
  if (end.state === 'failed') throw refused(failureOf(end));
  const media = paths.map((path) => resolve(run.workspace, path));
  const sent = { state: end.state, route: end.route, text, media };
  const says = end.state === 'sent' ? `Sent${idsOf(call, end)}.` : notKnown;
  return { text: says, metadata: { sent, messageIds: end.receipts } };
}

type Written = { readonly text: string; readonly paths: readonly string[] };

/** Builds the contents: the text, then the files. A short text becomes the caption of the first file. */
async function contentsOf(call: Call, { text, paths }: Written): Promise<readonly OutboundContent[]> {
  const { shaper, abilities, run, ctx } = call;
  const limits = abilities?.text ?? { maxLength: 2000 };
  const shaped = text.trim() === '' ? [] : await shaper.shape(text, limits);
  const texts = shaped.map((each): OutboundContent => ({ kind: 'text', text: each }));
  if (texts.length + paths.length === 0) throw refused('There is nothing to send in this text.');
  if (paths.length === 0) return texts;
  const maxBytes = abilities?.media?.maxBytes ?? 0;
  const [first, ...rest] = await copyOutgoing(call, { run, paths, maxBytes, signal: ctx.signal });
  const [caption] = shaped;
  const fits =
    caption && shaped.length === 1 && lengthOf(caption, limits) <= (abilities?.caption?.maxLength ?? 0);
  return fits && first ? [{ ...first, caption }, ...rest] : [...texts, ...(first ? [first] : []), ...rest];
}

function lengthOf(text: FormattedText, { nativeLength }: Capabilities['text']): number {
  return nativeLength?.(text) ?? text.text.length;
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
  const silence = judgeWritten(written, 'chat');
  const texts = silence.kind === 'silent' ? [] : await shaper.shape(silence.text, abilities.text);
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

/** `current` is a message of this conversation only; the store knows which one is the last. */
function readReference(named: string, { run, toLane }: Pick<Call, 'run' | 'toLane'>): MessageId {
  if (named !== 'current') return messageId(named);
  if (toLane === undefined && run.route?.replyTo !== undefined) return run.route.replyTo;
  throw refused('There is no current message there; name it by its id.');
}

type PartsToSend = Pick<ToolSendInput, 'contents' | 'quotes' | 'changesOwnOnly'>;
type SendEnd = Omit<ToolSendEnd, 'state'> & { readonly state: 'sent' | 'unknown' | 'failed' };

async function sendParts(
  { toolSender, run, route, toLane, ctx }: Call,
  posting: PartsToSend,
): Promise<SendEnd> {
  const { sessionKey: laneKey, epoch } = run;
  const target = { laneKey, epoch, ...callOf({ run, ctx }), route, ...(toLane !== undefined && { toLane }) };
  const posted = await toolSender.send({ ...target, ...posting }, ctx.signal);
  const state = posted.state === 'sent' || posted.state === 'failed' ? posted.state : 'unknown';
  return { ...posted, state };
}

function callOf({ run: { runId }, ctx }: Pick<Call, 'run' | 'ctx'>): Pick<ToolSendInput, 'runId' | 'key'> {
  return { runId, key: `${runId}:tool:${ctx.callId}` };
}

const notKnown = 'It is on its way; whether it arrived is not known yet.';

/** Where a message can be referred to later, by what. */
function idsOf({ abilities }: Call, { receipts }: SendEnd): string {
  if (!abilities?.canQuote && !abilities?.canEdit) return '';
  if (receipts.length === 0) return '';
  return receipts.length === 1 ? ` as message ${receipts[0]}` : ` as messages ${receipts.join(', ')}`;
}

/** Describes a failed send. The parts of a message are sent one after the other, and none after one that failed. */
function failureOf({ sentParts, keys, problem = 'the network refused it' }: SendEnd): string {
  if (sentParts === 0) return `It was not delivered: ${problem}`;
  return `Only its beginning was delivered (${sentParts} of ${keys.length} messages), but not the rest: ${problem}`;
}

function refused(message: string): ParleyError {
  return new ParleyError('tool_failed', message);
}

function unsupported(what: string): ParleyError {
  return new ParleyError('not_supported', `The network of this conversation cannot ${what}.`);
}
