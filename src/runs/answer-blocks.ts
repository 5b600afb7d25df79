/**
 * Sends an answer in blocks while the model writes it. Each block is an outbox row before anything of it is sent, so
 * another holder of the run continues behind the stored ones.
 */
import type { Capabilities } from '#contracts/capabilities.ts';
import { type FormattedText, plainText } from '#contracts/formatted-text.ts';
import type { MessagePart } from '#contracts/message.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import { type ReplyRoute, routeOf, withoutQuote } from '#contracts/route.ts';
import { type Block, type BlockMoment, BlockStream, type SentBlocks } from '../replies/block-stream.ts';
import { chunkFormatted } from '../replies/chunk.ts';
import { quotingParts, type ReplyToMode } from '../replies/reply-pipeline.ts';
import type { TextShaper } from '../replies/text-shaper.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { AssistantImage } from '../store/lanes/commit-turn.ts';
import { blockKeyOf, readOpenBlocks, type StoredBlock, storeBlocks } from '../store/lanes/live-parts.ts';
import type { RunFence } from '../store/rows/run.ts';
import type { Display, RunSettings } from './agents.ts';

/** The blocks of a run's answers. Its methods reject with the store's faults. */
export interface AnswerBlocks {
  /** Call it for each piece of text; `message` is the message so far. */
  push(message: AssistantImage, delta: string): Promise<void>;
  /** Call it when the text so far is discarded and written again. */
  anew(): void;
  /** Call it when tool calls follow the text, so that the text isn't an answer. */
  textEnded(message: AssistantImage): Promise<void>;
  /** Call it when the model has ended; returns what was sent of the answer. */
  finish(): Promise<BlocksSent>;
  /** Call it when a new message begins. */
  next(): void;
  /** Says whether a person may have seen a block of the present message. */
  isShown(): boolean;
  /** Sends nothing more. */
  close(): void;
}

/** Blocks that were sent of an answer, and how the rest of it is cut. */
export type BlocksSent = {
  readonly sent: SentBlocks;
  readonly keys: readonly string[];
  readonly limits: Display['blocks'];
};

type AnswerBlocksOptions = RunFence & {
  readonly store: Store;
  readonly shaper: TextShaper;
  readonly text: Capabilities['text'];
  readonly route: ReplyRoute;
  readonly replyToMode: ReplyToMode;
  readonly settings: Display['blocks'];
  /** Blocks of an unfinished answer that an earlier holder of the run has stored. */
  readonly before: readonly StoredBlock[];
  /** Returns the messages that precede the first block. */
  leadOf(parts: readonly MessagePart[]): readonly FormattedText[];
  /** Says whether the text may be sent before it was judged: not after a tool has sent a message, which it may repeat. */
  mayStream(): boolean;
  start(effects: Effects): void;
};

/** Creates the blocks of a run for its recorder. */
export type OpenBlocks = (scene: Pick<AnswerBlocksOptions, 'leadOf' | 'mayStream'>) => AnswerBlocks;

/** Creates the blocks of one attempt at a run. */
function createAnswerBlocks(options: AnswerBlocksOptions): AnswerBlocks {
  return new RunBlocks(options);
}

/** Prepares the blocks of the run's answers; undefined if they aren't sent in blocks. */
export async function blocksFor(
  {
    store,
    shaper,
    settings,
    start,
  }: Pick<AnswerBlocksOptions, 'store' | 'shaper' | 'start'> & {
    readonly settings: Pick<RunSettings, 'replyToMode'>;
  },
  run: ClaimedRun,
  { display, capabilities }: { readonly display: Display; readonly capabilities: Capabilities },
): Promise<OpenBlocks | undefined> {
  const route = routeOf(run.target);
  if (route === undefined || display.stream !== 'blocks') return undefined;
  const { runId, laneKey, epoch } = run;
  const before = run.isResumed ? await store.read(readOpenBlocks, { runId }) : [];
  return (scene) =>
    createAnswerBlocks({
      ...{ runId, laneKey, epoch, store, shaper, route, before, start, ...scene },
      text: capabilities.text,
      replyToMode: settings.replyToMode,
      settings: display.blocks,
    });
}

class RunBlocks implements AnswerBlocks {
  readonly #options: AnswerBlocksOptions;
  #stream: BlockStream;
  #keys: readonly string[];
  #message: AssistantImage | undefined;
  #count = 0;
  #hasQuoted = false;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Everything stored so far, one after the other. */
  #work: Promise<void> = Promise.resolve();

  constructor(options: AnswerBlocksOptions) {
    this.#options = options;
    this.#stream = new BlockStream(options.settings, options.before);
    this.#keys = options.before.map(({ key }) => key);
  }

  async push(message: AssistantImage, delta: string): Promise<void> {
    this.#begin(message);
    this.#stream.push(delta);
    clearTimeout(this.#timer);
    if (this.#options.settings.breakAt === 'message_end' || this.#isClosed) return;
    await this.#send('growing');
    this.#timer = setTimeout(
      () => void this.#send('paused').catch(() => undefined),
      this.#options.settings.idleMs,
    );
  }

  anew(): void {
    this.#stream.reset();
  }

  async textEnded(message: AssistantImage): Promise<void> {
    this.#begin(message);
    clearTimeout(this.#timer);
    await this.#send('ended');
  }

  async finish(): Promise<BlocksSent> {
    clearTimeout(this.#timer);
    await this.#work;
    return { sent: this.#stream.sent, keys: this.#keys, limits: this.#options.settings };
  }

  next(): void {
    clearTimeout(this.#timer);
    this.#stream = new BlockStream(this.#options.settings);
    this.#keys = [];
    this.#message = undefined;
  }

  isShown(): boolean {
    return this.#keys.length > 0;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #begin(message: AssistantImage): void {
    if (message.id !== this.#message?.id) this.#count = 0;
    this.#message = message;
  }

  /** Stores what is due, after what is being stored. A failure fails everything after it. */
  #send(moment: BlockMoment): Promise<void> {
    this.#work = this.#work.then(() => this.#store(moment));
    this.#work.catch(() => undefined);
    return this.#work;
  }

  async #store(moment: BlockMoment): Promise<void> {
    const { store, start, mayStream, laneKey, epoch, runId } = this.#options;
    const message = this.#message;
    if (message === undefined || this.#isClosed || !mayStream()) return;
    const isFirst = this.#keys.length === 0;
    const blocks = this.#stream.take(moment);
    if (blocks.length === 0) return;
    const contents = [
      ...(isFirst ? this.#options.leadOf(message.parts) : [])
        .flatMap((lead) => chunkFormatted(lead, this.#options.text))
        .map((text) => ({ kind: 'text', text }) as const),
      ...(await Promise.all(blocks.map((block) => this.#contentsOf(block)))).flat(),
    ];
    const parts = contents.map((content) => ({
      key: blockKeyOf({ runId }, message.id, this.#count++),
      route: this.#nextRoute(),
      content,
      purpose: 'reply' as const,
    }));
    const effects = await store.write(storeBlocks, { laneKey, epoch, runId, message, parts });
    if (effects === undefined) return this.close();
    this.#keys = [...this.#keys, ...parts.map(({ key }) => key)];
    start(effects);
  }

  async #contentsOf({ markdown, source }: Block): Promise<readonly OutboundContent[]> {
    const [first, ...rest] = await this.#shape(markdown);
    return first ? [{ ...first, source }, ...rest] : [{ kind: 'text', text: plainText(source), source }];
  }

  async #shape(markdown: string): Promise<readonly Extract<OutboundContent, { kind: 'text' }>[]> {
    const { shaper, text } = this.#options;
    return (await shaper.shape(markdown, text)).map((text) => ({ kind: 'text', text }));
  }

  #nextRoute(): ReplyRoute {
    const { route, replyToMode } = this.#options;
    const mode = quotingParts(replyToMode, route);
    const quotes = route.replyTo !== undefined && (mode === 'all' || (mode === 'first' && !this.#hasQuoted));
    this.#hasQuoted = true;
    return quotes ? { ...withoutQuote(route), replyTo: route.replyTo } : withoutQuote(route);
  }
}
