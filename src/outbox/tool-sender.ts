import type { Clock } from '#contracts/clock.ts';
import type { Store } from '../store/base/command.ts';
import {
  type PartState,
  readIsPosted,
  readPartStates,
  storeToolParts,
  type ToolSendInput,
  type ToolSendResult,
} from '../store/delivery/tool-send.ts';

/** A tool's message after its send: the worst state of its parts, how many were sent of how many, and all receipts. */
export type ToolSendEnd = ToolSendResult &
  PartState & { readonly sentParts: number; readonly allParts: number };

/** Sends messages from tools and waits for the result. */
export interface ToolSender {
  /** Resolves once the message's parts have ended, or with an open state if they haven't after 30 s. */
  send(posting: ToolSendInput, signal: AbortSignal): Promise<ToolSendEnd>;
  /** Says whether an earlier attempt of the call has sent its message; a new send then only finds that message. */
  isPosted(call: Pick<ToolSendInput, 'runId' | 'key'>): Promise<boolean>;
  /** Reports that some part has ended. */
  settled(): void;
}

const patienceMs = 30_000;
const order: readonly PartState['state'][] = ['sent', 'pending', 'sending', 'unknown', 'failed'];

/** Creates the sender of messages that tools send. */
export function createToolSender(deps: {
  readonly store: Store;
  readonly clock: Clock;
  deliver(conversationKey: string): void;
}): ToolSender {
  const { store, clock } = deps;
  let waiting = Promise.withResolvers<void>();
  return {
    settled: () => {
      waiting.resolve();
      waiting = Promise.withResolvers<void>();
    },
    isPosted: (call) => store.read(readIsPosted, call),
    send: async (posting, signal) => {
      const posted = await store.write(storeToolParts, posting);
      deps.deliver(posted.conversationKey);
      const until = clock.now() + patienceMs;
      while (true) {
        const change = waiting.promise;
        const states = await store.read(readPartStates, { runId: posting.runId, key: posting.key });
        const worst = worstOf(states);
        // A bad file of an album doesn't end the others.
        const isOpen = states.some(({ state }) => state === 'pending' || state === 'sending');
        const sentParts = states.filter(({ state }) => state === 'sent').length;
        if (!isOpen || signal.aborted || clock.now() >= until)
          return {
            ...posted,
            ...worst,
            receipts: states.flatMap(({ receipts }) => receipts),
            sentParts,
            allParts: states.length,
          };
        // Other processes end parts without notifying this one: check once a second.
        await Promise.race([change, clock.wait(1_000, signal)]);
      }
    },
  };
}

function worstOf(states: readonly PartState[]): PartState {
  const none: PartState = { state: 'pending', problem: undefined, receipts: [] };
  return states.reduce(
    (worst, one) => (order.indexOf(one.state) > order.indexOf(worst.state) ? one : worst),
    states[0] ?? none,
  );
}
