import type { AgentEvent } from '#contracts/agent-event.ts';
import type { Capabilities } from '#contracts/capabilities.ts';
import type { FormattedText } from '#contracts/formatted-text.ts';
import { type AgentMessage, finishReasonOf, sourcesOf, textOf } from '#contracts/message.ts';
import type { ModelFailure } from '#contracts/model.ts';
import type { Outcome } from '#contracts/outcome.ts';
import { routeOf } from '#contracts/route.ts';
import type { Sections } from '#contracts/section.ts';
import type { ToolSend } from '../replies/dedupe.ts';
import { markStopped } from '../replies/preview.ts';
import {
  decideReply,
  planReply,
  type ReplyInput,
  type ReplyPlan,
  type ReplyToMode,
  shapeInternalFailure,
} from '../replies/reply-pipeline.ts';
import type { SilenceContext } from '../replies/silence-grammar.ts';
import { withSources } from '../replies/source-lines.ts';
import type { TextShaper } from '../replies/text-shaper.ts';
import type { ClaimedRun } from '../store/lanes/claim-lane.ts';
import type { RoutedPart } from '../store/lanes/commit-answer.ts';
import type { LivePreview } from '../store/lanes/recover-run.ts';
import type { ChatTexts } from '../texts/chat-texts.ts';
import type { StopReason } from './active-runs.ts';
import { answerParts, previewRoute } from './answer-parts.ts';
import { endNotice } from './end-notice.ts';

/** The setting in which an answer or the end of a run is shown. */
export type AnswerScene = {
  readonly run: Pick<ClaimedRun, 'target' | 'chatKind'>;
  readonly capabilities: Capabilities;
  readonly replyToMode: ReplyToMode;
  readonly texts: ChatTexts;
};

/** The run's actions since its last answer. */
export type RunActions = {
  readonly toolSends: readonly ToolSend[];
  readonly toolFailure: { readonly tool: string } | undefined;
  /** Whether to drop an answer that only acknowledges what a tool has sent. */
  readonly suppressAcknowledgements: boolean;
};

export type ShapingDeps = {
  readonly shaper: TextShaper;
  readonly sections: Sections;
  /** Which words mean "send nothing", depending on the messages that the run has taken. */
  readonly silence: SilenceContext;
  /** Says whether the model has seen the message with this platform id in the conversation it answers. */
  hasSeen(messageId: string): Promise<boolean>;
};

/** Plans the reply to send. Only asynchronous for texts too long for the event loop, and to check a quoted id. */
export async function planAnswer(
  message: AgentMessage,
  scene: AnswerScene & ShapingDeps,
  actions: RunActions,
): Promise<ReplyPlan> {
  const { run, shaper, sections, silence, hasSeen, ...rest } = scene;
  const input: ReplyInput = {
    ...rest,
    text: textOf(message.parts),
    isCut: finishReasonOf(message.parts) === 'max_tokens',
    toolSends: actions.toolSends,
    route: routeOf(run.target),
    chatKind: run.chatKind,
    silenceContext: silence,
    ...(actions.toolFailure && { toolFailure: actions.toolFailure }),
    ...(!actions.suppressAcknowledgements && { acknowledgements: [] }),
  };
  const judged = sections.run('judge answer', () => decideReply(input));
  const { replyTag } = judged;
  // The model may name any id, even one that somebody gave it; messages of other conversations aren't quoted.
  const isForeign = replyTag !== undefined && replyTag !== 'current' && !(await hasSeen(replyTag));
  const reply = isForeign ? { ...judged, replyTag: undefined } : judged;
  const { decided } = reply;
  const shown = decided.kind === 'text' && withSources(decided.text, sourcesOf(message.parts));
  const texts = shown ? await shaper.shape(shown, scene.capabilities.text) : [];
  return planReply(input, reply, texts);
}

export type EndOutcome = {
  readonly outcome: Outcome;
  readonly outcomeReason: string;
  readonly parts: readonly RoutedPart[];
};

/** The cause of an end, and the part of the answer that people have seen. */
type RunEnd = {
  readonly stop: StopReason | undefined;
  readonly failure: ModelFailure | undefined;
  /** The part of its answer that people see. */
  readonly shown: FormattedText | undefined;
  readonly standing: LivePreview | undefined;
};

/**
 * Plans the end of a run without an answer. A run that a person stopped ends without a notice, and what they saw of its
 * answer stays, marked as stopped; any other run has a notice in place of its preview.
 */
export function planEnd(
  { reason }: Pick<Extract<AgentEvent, { type: 'agent_end' }>, 'reason'>,
  scene: AnswerScene,
  why: RunEnd,
): EndOutcome {
  const { target } = scene.run;
  const { standing } = why;
  if (why.stop !== undefined) {
    const plan =
      why.stop === 'stop' && why.shown ? keepShown(why.shown, scene) : ({ kind: 'silent' } as const);
    const parts = answerParts(plan, { ...scene, target, standing });
    return { outcome: 'cancelled', outcomeReason: why.stop, parts };
  }
  const { run, ...rest } = scene;
  const notice = endNotice(reason, why.failure, scene.texts);
  const plan = shapeInternalFailure({ ...rest, ...run, route: routeOf(run.target) }, notice);
  return {
    outcome: 'failed',
    outcomeReason: why.failure?.kind === 'oversized' ? 'answer too large' : reason,
    parts: [
      ...answerParts({ kind: 'silent' }, { ...scene, target, standing }),
      ...answerParts(plan, { ...scene, target, standing: undefined }),
    ],
  };
}

function keepShown(shown: FormattedText, { run, capabilities, texts, replyToMode }: AnswerScene): ReplyPlan {
  const route = routeOf(run.target);
  const replyTo = route && previewRoute(route, replyToMode).replyTo;
  const text = markStopped(shown, texts.answerStopped, capabilities.text);
  return { kind: 'send', parts: [{ content: { kind: 'text', text }, ...(replyTo && { replyTo }) }] };
}
