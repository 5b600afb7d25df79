import { retryAfterMs } from '#channel-kit/remote-number.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { PreviewStyle } from '#contracts/capabilities.ts';
import type { ChannelAdapter, HostedChannel } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { type MessageId, partKey } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import type { OutboundContent, SendResult } from '#contracts/outbound.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import {
  adoptPreview,
  recordPreview,
  type ShownPreview,
  type UnknownPreview,
} from '../store/delivery/preview.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { LivePreview } from '../store/lanes/recover-run.ts';

/** Where a preview is shown: the network's own draft, or a message that is edited. */
export interface PreviewSurface {
  /**
   * Shows this text in place of the previous one; returns false if nothing may be shown yet. May throw, which doesn't
   * prevent further calls.
   */
  show(text: FormattedText): Promise<boolean>;
  /** The preview message on the platform, for the answer to take over or remove. */
  preview(): LivePreview | undefined;
  /** Says whether there is such a message, or may be. */
  mayStand(): boolean;
  /** Resolves once a lost preview message has been looked for, as far as that is possible. */
  settled(): Promise<void>;
  /** Call it when that message belongs to an answer: the next preview is a new message. */
  reset(): void;
}

export type PreviewPlace = {
  readonly adapter: ChannelAdapter;
  readonly route: ReplyRoute;
  readonly runId: string;
  readonly laneKey: string;
  /** The claim's epoch, so that previews of another holder of the run have different keys. */
  readonly epoch: number;
  /** The preview left by an earlier holder of this run. */
  readonly preview: LivePreview | undefined;
  /** Looks for a preview that an earlier holder may have left. */
  readonly findLost?: FindLostPreview | undefined;
  /** Creates the search for a preview whose call got no response. */
  lookFor(lost: UnknownPreview): FindLostPreview;
  readonly store: Store;
  /** Survives this process, in case the store doesn't have the preview yet. */
  readonly journal: PreviewJournal;
  readonly clock: Clock;
  readonly probe: Probe;
};

/** Keeps the platform's id of a preview until the store has it. */
export type PreviewJournal = {
  shown(preview: ShownPreview): void;
  end(key: string): void;
};

const callTimeoutMs = 10_000;

/** Creates the surface. The signal ends drafts, but not edits, because their outcome must be known. */
export function createPreviewSurface(
  place: PreviewPlace,
  style: PreviewStyle,
  signal: AbortSignal,
): PreviewSurface {
  return style === 'draft' ? createDraft(place, signal) : new EditedMessage(place);
}

function createDraft({ adapter, route, runId }: PreviewPlace, signal: AbortSignal): PreviewSurface {
  const draftId = draftIdOf(runId);
  return {
    show: async (text) => {
      await adapter.preview?.draft(route, draftId, text, signal);
      return true;
    },
    preview: () => undefined,
    mayStand: () => false,
    settled: async () => undefined,
    reset: () => undefined,
  };
}

/** Derives a draft id, a non-zero 31-bit number. It stays the same for a run, so that its drafts animate. */
function draftIdOf(runId: string): number {
  let hash = 7;
  for (const character of runId) hash = (hash * 31 + character.charCodeAt(0)) & 0x7fffffff;
  return hash === 0 ? 1 : hash;
}

class EditedMessage implements PreviewSurface {
  readonly #place: PreviewPlace;
  #preview: LivePreview | undefined;
  #findLost: FindLostPreview | undefined;
  #count = 0;
  #isOver = false;
  #quietUntil = 0;

  constructor(place: PreviewPlace) {
    this.#place = place;
    this.#preview = place.preview;
    this.#findLost = place.findLost;
  }

  async show(text: FormattedText): Promise<boolean> {
    const { clock } = this.#place;
    if (this.#isOver || clock.now() < this.#quietUntil) return true;
    await this.settled();
    if (!this.#preview) return this.#send(text);
    const { key, messageId } = this.#preview;
    // The store keeps receipts as plain text; this id came from the platform.
    const result = await this.#call(key, { kind: 'edit', messageId: messageId as MessageId, text });
    // The answer itself counts towards the same limit.
    if (result.kind === 'retry' && result.afterMs > 0)
      this.#quietUntil = clock.now() + retryAfterMs(result.afterMs);
    return true;
  }

  preview(): LivePreview | undefined {
    return this.#preview;
  }

  mayStand(): boolean {
    return this.#preview !== undefined || this.#findLost !== undefined;
  }

  async settled(): Promise<void> {
    const findLost = this.#findLost;
    if (findLost === undefined) return;
    const found = await findLost();
    // An answer may have taken it over while the lookup was running.
    if (this.#findLost !== findLost) return;
    this.#findLost = undefined;
    this.#preview ??= found;
  }

  reset(): void {
    this.#preview = undefined;
    this.#findLost = undefined;
  }

  /**
   * Stores the preview before sending it and its platform id afterwards, so that a restart finds the message; in
   * between, the journal has the id. The answer takes the preview over even if the store was unreachable when it was
   * shown.
   */
  async #send(text: FormattedText): Promise<boolean> {
    const { runId, laneKey, epoch, route, store, journal, probe } = this.#place;
    // A network might take a second part with the same key for a repeat of the first, which an answer has long
    // replaced.
    const key = `${runId}:preview:${epoch}.${this.#count++}`;
    const part = { key: partKey(key), route, content: { kind: 'text', text } } as const;
    if (!(await store.write(recordPreview, { kind: 'sending', key, runId, part }))) return false;
    const since = this.#place.clock.now();
    const result = await this.#call(key, part.content);
    if (result.kind === 'unknown') this.#findLost = this.#place.lookFor({ part, since });
    const messageId = result.kind === 'sent' ? result.receipts[0] : undefined;
    if (messageId === undefined) {
      await this.#giveUp(key, result);
      return true;
    }
    this.#preview = { key, messageId };
    const shown = { key, messageId, laneKey, epoch };
    journal.shown(shown);
    probe.reach('preview-shown');
    await store.write(recordPreview, { kind: 'sent', ...shown });
    journal.end(key);
    probe.reach('preview-sent');
    return true;
  }

  /** Ends previews for this run: without its id, a message could be neither edited nor deleted. */
  async #giveUp(key: string, result: SendResult): Promise<void> {
    this.#isOver = true;
    const problem = 'reason' in result ? result.reason : 'no receipt';
    if (result.kind === 'unknown') return;
    await this.#place.store.write(recordPreview, { kind: 'lost', key, problem });
  }

  #call(key: string, content: OutboundContent): Promise<SendResult> {
    const { adapter, route } = this.#place;
    return withLimit(callTimeoutMs, undefined, (limited) =>
      adapter.send({ key: partKey(key), route, content }, limited),
    );
  }
}

// A preview whose process died or got no response before the platform's id was known. If the network's history can be
// read, the message is looked up there; otherwise its fate is unknown, and `parley why` says so.

/** Looks for the preview once; resolves with it if it exists. Never rejects. */
export type FindLostPreview = () => Promise<LivePreview | undefined>;

type LostPreviewDeps = {
  readonly store: Store;
  readonly log: Log;
  /** Returns the current connection: after a restart a run may continue before its channel is back. */
  channel(): HostedChannel | undefined;
};

/** Longest time that an answer waits for the lookup, ms. */
const lookupMs = 3_000;

/** Creates the search for a preview of the run; it starts on the first call. */
export function createLostPreview(
  deps: LostPreviewDeps,
  run: Pick<ClaimedRun, 'laneKey' | 'epoch'>,
  lost: UnknownPreview,
): FindLostPreview {
  let found: Promise<LivePreview | undefined> | undefined;
  return () => {
    found ??= find(deps, run, lost).catch((error: unknown) => {
      deps.log.debug({ error, part: lost.part.key }, 'preview.lookup-failed');
      return undefined;
    });
    return found;
  };
}

async function find(
  { store, channel }: LostPreviewDeps,
  { laneKey, epoch }: Pick<ClaimedRun, 'laneKey' | 'epoch'>,
  { part, since }: UnknownPreview,
): Promise<LivePreview | undefined> {
  const lookup = channel()?.adapter.lookup;
  if (lookup === undefined) return undefined;
  const found = await withLimit(lookupMs, undefined, (limited) => lookup.find(part, since, limited));
  if (found.kind !== 'candidates') return undefined;
  const { messageIds } = found;
  return store.write(adoptPreview, { key: part.key, messageIds, laneKey, epoch });
}
