import type { Capabilities } from '#contracts/capabilities.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
import { noticeKindOn, type WaitingNoticeKind } from '#contracts/mark.ts';
import type { OutboundContent } from '#contracts/outbound.ts';
import type { ReplyRoute } from '#contracts/route.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import {
  readUnnotified,
  storeWaitingNotices,
  type UnnotifiedItem,
  type WaitingNotice,
} from '../store/items/waiting-notices.ts';
import { bisectFailures } from './bisect-failures.ts';

export type WaitingNoticeSettings = {
  readonly kind: WaitingNoticeKind;
  /** Waiting time before a notice, ms. */
  readonly afterMs: number;
  readonly emoji: string;
  /** Overrides `kind` for single channels. */
  readonly channels: Readonly<Record<string, WaitingNoticeKind>>;
};

export type WaitingNoticesDeps = {
  readonly store: Store;
  readonly log: Log;
  readonly settings: WaitingNoticeSettings;
  /** Text for channels without reactions. */
  readonly line: string;
  /** Text when no process runs agents. */
  readonly unworkedLine: string;
  /** Says whether any process runs agents. */
  hasWorker(): Promise<boolean>;
  /** Undefined for a channel that this process doesn't know. */
  capabilitiesFor(route: ReplyRoute): Capabilities | undefined;
  start(effects: Effects): void;
};

/** Notifies people that their messages are waiting. Throws the store's faults; the next look tries again. */
export interface WaitingNotices {
  look(): Promise<void>;
}

/** Creates the waiting notices; they are checked when the sweep calls `look`. */
export function createWaitingNotices(deps: WaitingNoticesDeps): WaitingNotices {
  const { store, log, settings, start } = deps;
  const isOff = [settings.kind, ...Object.values(settings.channels)].every((kind) => kind === 'off');
  let looking: Promise<void> | undefined;
  const look = async () => {
    const unnotified = await store.read(readUnnotified, { afterMs: settings.afterMs });
    if (unnotified.length === 0) return;
    const isWorked = await deps.hasWorker();
    const unworked: OutboundContent = { kind: 'text', text: { text: deps.unworkedLine, spans: [] } };
    const notices = unnotified.map((item) => ({
      ...item,
      content: isWorked || item.messageId === undefined ? noticeFor(deps, item) : unworked,
    }));
    const write = (some: readonly WaitingNotice[]) => store.write(storeWaitingNotices, { notices: some });
    const done = await bisectFailures(notices, write, async (notice, error) => {
      log.warn({ inboxId: notice.inboxId, error }, 'waiting-notice.dropped');
      // Recorded as notified; otherwise it would be read first forever.
      await write([{ ...notice, content: undefined }]);
    });
    for (const effects of done) start(effects);
  };
  return {
    look: async () => {
      if (isOff) return;
      looking ??= look().finally(() => {
        looking = undefined;
      });
      await looking;
    },
  };
}

/**
 * Chooses the notice. A page or a terminal shows waiting messages on its own; in a group, a line would disturb
 * everybody.
 */
function noticeFor(
  { settings, line, capabilitiesFor }: WaitingNoticesDeps,
  { route, chatKind, messageId }: UnnotifiedItem,
): OutboundContent | undefined {
  if (route === undefined) return undefined;
  const capabilities = capabilitiesFor(route);
  const kind = noticeKindOn(settings, route.channel);
  if (kind === 'off' || messageId === undefined || !capabilities || capabilities.isSessionBound)
    return undefined;
  const isLine = chatKind === 'dm' && (kind === 'line' || !capabilities.canReact);
  if (isLine) return { kind: 'text', text: { text: line, spans: [] } };
  if (!capabilities.canReact) return undefined;
  // The store keeps the platform's own id as plain text.
  return { kind: 'reaction', messageId: messageId as MessageId, emoji: settings.emoji };
}
