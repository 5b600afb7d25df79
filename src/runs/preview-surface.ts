import { retryAfterMs } from '#channel-kit/remote-number.ts';
import { withLimit } from '#channel-kit/with-limit.ts';
import type { PreviewStyle } from '#contracts/capabilities.ts';
import type { ChannelAdapter } from '#contracts/channel.ts';
import type { Clock } from '#contracts/clock.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { type MessageId, partKey } from '#contracts/ids.ts';
import type { OutboundContent, SendResult } from '#contracts/outbound.ts';
import type { Probe } from '#contracts/probe.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import { recordPreview, type ShownPreview, type UnknownPreview } from '../store/delivery/record-preview.ts';
import type { LivePreview } from '../store/lanes/recover-run.ts';
import type { FindLostPreview } from './lost-preview.ts';

/** Where a preview is shown: the network's own draft, or a message that is edited. */
export interface PreviewSurface {
  /**
   * Shows this text in place of the one before; false when nothing may be shown yet. May throw; the next one is
   * still tried.
   */
  show(text: FormattedText): Promise<boolean>;
  /** The preview message on the platform, for the answer to take over or remove. */
  standing(): LivePreview | undefined;
  /** There is one, or may be. */
  mayStand(): boolean;
  /** Resolves when it is known whether one stands that was lost sight of, as far as that can be found out. */
  settled(): Promise<void>;
  /** That message belongs to an answer now: the next preview is a new one. */
  reset(): void;
}

export type PreviewPlace = {
  readonly adapter: ChannelAdapter;
  readonly route: ReplyRoute;
  readonly runId: string;
  readonly laneKey: string;
  /** The claim's: what another holder of the run has shown has other keys. */
  readonly epoch: number;
  /** The preview left by an earlier holder of this run. */
  readonly standing: LivePreview | undefined;
  /** Looks for the one that an earlier holder may have left. */
  readonly findLost?: FindLostPreview | undefined;
  /** The search for one whose call got no answer. */
  lookFor(lost: UnknownPreview): FindLostPreview;
  readonly store: Store;
  /** Outlives this process where the store does not have the preview yet. */
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

/** The signal ends drafts; an edit is not cut short, because what it leaves must be known. */
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
    standing: () => undefined,
    mayStand: () => false,
    settled: async () => undefined,
    reset: () => undefined,
  };
}

/** A draft id is a non-zero 31-bit number; the same for one run, so that its drafts animate. */
function draftIdOf(runId: string): number {
  let hash = 7;
  for (const character of runId) hash = (hash * 31 + character.charCodeAt(0)) & 0x7fffffff;
  return hash === 0 ? 1 : hash;
}

class EditedMessage implements PreviewSurface {
  readonly #place: PreviewPlace;
  #standing: LivePreview | undefined;
  #findLost: FindLostPreview | undefined;
  #count = 0;
  #isOver = false;
  #quietUntil = 0;

  constructor(place: PreviewPlace) {
    this.#place = place;
    this.#standing = place.standing;
    this.#findLost = place.findLost;
  }

  async show(text: FormattedText): Promise<boolean> {
    const { clock } = this.#place;
    if (this.#isOver || clock.now() < this.#quietUntil) return true;
    await this.settled();
    if (!this.#standing) return this.#send(text);
    const { key, messageId } = this.#standing;
    // The store keeps receipts as plain text; this one came from the platform.
    const result = await this.#call(key, { kind: 'edit', messageId: messageId as MessageId, text });
    // The answer itself counts against the same limit.
    if (result.kind === 'retry' && result.afterMs > 0)
      this.#quietUntil = clock.now() + retryAfterMs(result.afterMs);
    return true;
  }

  standing(): LivePreview | undefined {
    return this.#standing;
  }

  mayStand(): boolean {
    return this.#standing !== undefined || this.#findLost !== undefined;
  }

  async settled(): Promise<void> {
    const findLost = this.#findLost;
    if (findLost === undefined) return;
    const found = await findLost();
    // Asked for once more meanwhile, it may have been taken over.
    if (this.#findLost !== findLost) return;
    this.#findLost = undefined;
    this.#standing ??= found;
  }

  reset(): void {
    this.#standing = undefined;
    this.#findLost = undefined;
  }

  /**
   * Stored before it is sent and its platform id after, so that a restart finds what it left: meanwhile the journal has
   * that id. The answer takes it over even if the store was away as it was shown.
   */
  async #send(text: FormattedText): Promise<boolean> {
    const { runId, laneKey, epoch, route, store, journal, probe } = this.#place;
    // A network may take a second part of one key for a repeat of the first, which an answer has long replaced.
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
    this.#standing = { key, messageId };
    const shown = { key, messageId, laneKey, epoch };
    journal.shown(shown);
    probe.reach('preview-shown');
    await store.write(recordPreview, { kind: 'sent', ...shown });
    journal.end(key);
    probe.reach('preview-sent');
    return true;
  }

  /** Without its id it could neither be edited nor deleted: better no further preview in this run. */
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
