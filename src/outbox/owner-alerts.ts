/**
 * Tells the owner what is wrong: one direct message for each alert, on the working channel where an owner wrote
 * last. Alerts are rows in the store, written here or where they occur, so that a crash loses none and none
 * is sent twice.
 */
import { waitInStep } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import { type Alert, avoidedPlace, isLasting, type ShownAlert } from '#contracts/owner-alert.ts';
import { alertEndText, alertText } from '../replies/owner-texts.ts';
import {
  type AlertName,
  dismissNotice,
  raiseAlert,
  readOpenAlerts,
  resolveAlert,
  type TroubleEnd,
} from '../store/alerts/alert.ts';
import { type OwnerSearch, readOwnerRoute } from '../store/alerts/owner-route.ts';
import type { Store } from '../store/base/command.ts';
import {
  queueAlertMessage,
  readOpenNotices,
  readPendingNotices,
  type StoredNotice,
} from '../store/delivery/queue-alert-message.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';

/** How the owner can be reached. This machine's own channels don't count, because its user sees the page. */
export type OwnerReach = {
  /** Keys of the bot accounts that can carry a message now. */
  readonly accounts: readonly string[];
  /** Channels with an unreachable account, which should come back on its own or be fixed. */
  readonly awaited: readonly string[];
  /** Returns the key of a connection's account; undefined until it is known. */
  accountOf(line: string): string | undefined;
};

/** Everything needed to notify an owner. */
export type OwnerAlertsDeps = {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly texts: ChatTexts;
  /** The time zone of the times that the owner reads; default: this machine's. */
  readonly timeZone?: string | undefined;
  /** `<channel>:<peer>`; the store knows those who were approved as owners. */
  readonly owners: readonly string[];
  reach(): OwnerReach;
  deliver(conversationKey: string): void;
};

/** Notifies the owner of alerts, of each one once, and lists the open ones. */
export interface OwnerAlerts {
  /** Raises an alert; a lasting state reported again is the same alert. Never throws: a failed write is retried. */
  raise(trouble: Alert): void;
  /** Resolves an alert, if it is open. */
  end(trouble: TroubleEnd): void;
  /** Resolves, without notifying the owner, each open alert for which `isOver` returns true. */
  endWhere(isOver: (alert: AlertName) => boolean): void;
  /** Returns the open notices that weren't dismissed, newest first. */
  shown(): Promise<readonly ShownAlert[]>;
  /** Returns false when there is no such notice. */
  dismiss(id: string): Promise<boolean>;
  stop(): Promise<void>;
}

const intervalMs = 5_000;
/** Events come in groups, so their one message waits until it can give their number. */
const gatherMs = 5_000;
/** An end is only reported after this time; a problem that comes back before that continues the same alert. */
const settleMs = 300_000;
const atOnce = 50;

type Step = (store: Store) => Promise<void>;

/** Creates the alerts; they are stored and sent in the background until `stop`. */
export function createOwnerAlerts(deps: OwnerAlertsDeps): OwnerAlerts {
  const { store, clock, log } = deps;
  const stopping = new AbortController();
  let waiting: Step[] = [];
  let isFailing = false;

  const work = async (): Promise<void> => {
    try {
      while (waiting.length > 0) {
        await waiting[0]?.(store);
        waiting = waiting.slice(1);
      }
      await sendPending(deps);
      isFailing = false;
    } catch (error) {
      if (!isFailing) log.warn({ error }, 'owner.not-told');
      isFailing = true;
    }
  };
  const loop = async () => {
    while (!stopping.signal.aborted) {
      await work();
      await waitInStep(clock, intervalMs, AbortSignal.any([stopping.signal, asked.signal]));
      asked = new AbortController();
    }
  };
  let asked = new AbortController();
  const running = loop();
  const ask = (step: Step) => {
    waiting = [...waiting, step];
    asked.abort();
  };
  return {
    raise: (trouble) =>
      ask(async (to) => {
        if (await to.write(raiseAlert, trouble)) log.warn(trouble, 'owner.notified');
      }),
    end: (trouble) => ask((to) => to.write(resolveAlert, trouble)),
    endWhere: (isOver) =>
      ask(async (to) => {
        for (const alert of await to.read(readOpenAlerts, {}))
          if (isOver(alert)) await to.write(resolveAlert, { ...alert, isSilent: true });
      }),
    shown: async () => {
      const open = await store.read(readOpenNotices, { limit: atOnce });
      return open.map((notice) => {
        const { id, kind, count, raisedAt: since, lastAt } = notice;
        return { id, kind, text: alertText(deps.texts, notice, deps.timeZone), count, since, lastAt };
      });
    },
    dismiss: async (id) => (await store.write(dismissNotice, { id })) === 'done',
    stop: async () => {
      stopping.abort();
      await running;
      // Notices raised during shutdown are stored too.
      await work();
    },
  };
}

async function sendPending(deps: OwnerAlertsDeps): Promise<void> {
  const now = deps.clock.now();
  const pending = await deps.store.read(readPendingNotices, { limit: atOnce });
  const failures: unknown[] = [];
  for (const notice of pending)
    if (isDue(notice, now)) await tell(deps, notice).catch((error: unknown) => failures.push(error));
  // One failure doesn't keep the other notices from being sent.
  if (failures.length > 0) throw failures[0];
}

function isDue({ kind, raisedAt, endedAt }: StoredNotice, now: number): boolean {
  if (endedAt !== undefined) return endedAt + settleMs <= now;
  return isLasting(kind) || raisedAt + gatherMs <= now;
}

async function tell(deps: OwnerAlertsDeps, notice: StoredNotice): Promise<void> {
  const { store, texts, owners, deliver } = deps;
  const { id, endedAt } = notice;
  if (endedAt !== undefined) {
    const text = alertEndText(texts, notice);
    const told = await store.write(queueAlertMessage, {
      id,
      step: 'ended',
      ...(text !== undefined && { text }),
    });
    if (told !== undefined) deliver(told);
    return;
  }
  const { accounts, awaited, accountOf } = deps.reach();
  const excluded = unusable(notice, accountOf);
  const find = (by: Pick<OwnerSearch, 'accounts' | 'channels'>) =>
    store.read(readOwnerRoute, { owners, ...excluded, ...by });
  const route = await find({ accounts });
  // It is sent once the account that reaches the owner is back.
  if (!route && awaited.length > 0 && (await find({ channels: awaited }))) return;
  const text = alertText(texts, notice, deps.timeZone);
  const told = await store.write(queueAlertMessage, { id, step: 'raised', text, ...(route && { route }) });
  if (told !== undefined) deliver(told);
}

/** Excludes the place that the alert is about. */
function unusable(
  { kind, subject }: StoredNotice,
  accountOf: OwnerReach['accountOf'],
): Pick<OwnerSearch, 'notBy' | 'notIn'> {
  switch (avoidedPlace(kind)) {
    case 'account':
      return { notBy: accountOf(subject) };
    case 'conversation':
      return { notIn: subject };
    default:
      return {};
  }
}
