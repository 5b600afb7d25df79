/** Lists the open questions for the page, and ends those that aren't answered in time. */
import { waitInStep } from '#channel-kit/system-clock.ts';
import type { Clock } from '#contracts/clock.ts';
import type { Log } from '#contracts/log.ts';
import type { AnswerResult, ShownQuestion } from '#contracts/owner-alert.ts';
import type { Probe } from '#contracts/probe.ts';
import { atPage } from '../commands/pair.ts';
import { hasOwner } from '../config/load-config.ts';
import { readHasApprovedOwner } from '../store/access/admit.ts';
import { decideOnPage, expireQuestion } from '../store/access/decide-approval.ts';
import { readOpenApprovals, type Verdict } from '../store/approvals/approval.ts';
import { type CallApproval, readOpenCallApprovals } from '../store/approvals/call-approval.ts';
import type { Store } from '../store/base/command.ts';
import type { Effects } from '../store/base/effects.ts';
import { type ChatTexts, fillText } from '../texts/chat-texts.ts';

/** Questions to the owner, for the page. */
export interface OwnerQuestions {
  /** Returns the requests for access and the calls to approve, newest first. A group's question is asked in the group. */
  questions(): Promise<readonly ShownQuestion[]>;
  /** Answers as the owner. Safe to repeat: the first answer counts, and a later one says so. */
  answer(id: string, verdict: Verdict): Promise<AnswerResult>;
  stop(): Promise<void>;
}

const intervalMs = 5_000;
const atOnce = 50;

/** Creates the list; expired questions are ended in the background until `stop`. */
export function createOwnerQuestions(deps: {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly probe: Probe;
  readonly texts: ChatTexts;
  /** Configured owners; without one, the first person approved here becomes the owner. A reload changes them. */
  readonly owners: readonly string[];
  /** Dispatches a commit's effects. */
  start(effects: Effects): void;
}): OwnerQuestions {
  const { store, clock, log, probe, texts } = deps;
  const stopping = new AbortController();
  const loop = async () => {
    while (!stopping.signal.aborted) {
      try {
        const due = { limit: atOnce, isDue: true };
        const questions = [
          ...(await store.read(readOpenApprovals, due)),
          ...(await store.read(readOpenCallApprovals, due)),
        ];
        for (const { id } of questions) {
          const effects = await store.write(expireQuestion, { id });
          probe.reach('wait-expired');
          deps.start(effects);
        }
      } catch (error) {
        // The queue's sweep reports an unreachable store.
        log.debug({ error }, 'questions.not-expired');
      }
      await waitInStep(clock, intervalMs, stopping.signal);
    }
  };
  const running = loop();
  return {
    questions: async () => {
      const open = await store.read(readOpenApprovals, { limit: atOnce, isDue: false });
      const requests = open.filter(({ kind }) => kind === 'pairing');
      const calls = (await store.read(readOpenCallApprovals, { limit: atOnce, isDue: false })).map((call) =>
        callQuestion(call, texts),
      );
      if (requests.length === 0) return calls;
      const makesOwner = !hasOwner(deps) && !(await store.read(readHasApprovedOwner, undefined));
      const choices = [
        { verdict: 'approve', label: makesOwner ? texts.approveOwnerLabel : texts.approveLabel },
        { verdict: 'deny', label: texts.denyLabel },
      ] as const;
      const asked = requests.map(({ id, createdAt: since, details: { question = '' } }) => {
        const text = makesOwner ? fillText(texts.pairingMakesOwner, { question }) : question;
        return { id, since, text, choices };
      });
      return [...asked, ...calls].sort((one, other) => other.since - one.since);
    },
    answer: async (id, verdict) => {
      const role = hasOwner(deps) ? 'user' : 'owner-if-none';
      const by = { ref: atPage, label: texts.whoAtPage, isOwner: true, role } as const;
      const { decided, effects } = await store.write(decideOnPage, { id, verdict, by });
      probe.reach('approval-decided');
      deps.start(effects);
      return { result: decided.kind, text: decided.text };
    },
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

function callQuestion({ id, tool, shown, createdAt: since }: CallApproval, texts: ChatTexts): ShownQuestion {
  const text = `${fillText(texts.callQuestion, { tool })}\n${shown}`;
  const choices = [
    { verdict: 'approve', label: texts.approveLabel },
    { verdict: 'always', label: texts.approveAlwaysLabel },
    { verdict: 'deny', label: texts.denyLabel },
  ] as const;
  return { id, since, text, choices };
}
