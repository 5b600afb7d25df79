import type { Capabilities } from '#contracts/capabilities.ts';
import type { MessageId } from '#contracts/ids.ts';
import type { Log } from '#contracts/log.ts';
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
import { actApart } from './act-apart.ts';

export type WaitingNoticeKind = 'reaction' | 'line' | 'off';

export type WaitingNoticeSettings = {
  readonly kind: WaitingNoticeKind;
  /** Waiting time before a notice, ms. */
  readonly afterMs: number;
  readonly emoji: string;
  /** Another kind for single channels. */
  readonly channels: Readonly<Record<string, WaitingNoticeKind>>;
};

export type WaitingNoticesDeps = {
  readonly store: Store;
  readonly log: Log;
  readonly settings: WaitingNoticeSettings;
  /** Text where reactions don't exist. */
  readonly line: string;
  /** Text when no process runs agents. */
  readonly unworkedLine: string;
  /** Whether one does. */
  hasWorker(): Promise<boolean>;
  /** Undefined for a channel that this process does not know. */
  capabilitiesFor(route: ReplyRoute): Capabilities | undefined;
  start(effects: Effects): void;
};

/** Tells people that their messages wait. Throws what the store throws; the next look repeats it. */
export interface WaitingNotices {
  look(): Promise<void>;
}

/** Creates the teller of waiting notices; it looks when the sweep asks it to. */
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
    const done = await actApart(notices, write, async (notice, error) => {
      log.warn({ inboxId: notice.inboxId, error }, 'waiting-notice.dropped');
      // Noted as told, or it would be read first for ever.
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

/** A page or a terminal shows by itself what waits there; in a group a line would disturb everybody. */
function noticeFor(
  { settings, line, capabilitiesFor }: WaitingNoticesDeps,
  { route, chatKind, messageId }: UnnotifiedItem,
): OutboundContent | undefined {
  if (route === undefined) return undefined;
  const capabilities = capabilitiesFor(route);
  const own = Object.hasOwn(settings.channels, route.channel) ? settings.channels[route.channel] : undefined;
  const kind = own ?? settings.kind;
  if (kind === 'off' || messageId === undefined || !capabilities || capabilities.isSessionBound)
    return undefined;
  const isLine = chatKind === 'dm' && (kind === 'line' || !capabilities.canReact);
  if (isLine) return { kind: 'text', text: { text: line, spans: [] } };
  if (!capabilities.canReact) return undefined;
  // The store keeps the platform's own id as plain text.
  return { kind: 'reaction', messageId: messageId as MessageId, emoji: settings.emoji };
}
