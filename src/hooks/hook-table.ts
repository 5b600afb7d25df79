/**
 * Lists the possible decisions of each hook, and the consequence of a failure. `passes`: the event continues as if the handler had not been
 * there, and five failures in a row suspend it. `closes`: the guarded step doesn't happen, or its result is withheld.
 * Hooks that aren't listed observe: nothing waits for their decision, and a failure is only counted.
 */
import { z } from 'zod';
import type { DecidingHook, HookDecisions, HookEvents, HookName, HookResult } from '#contracts/hook.ts';

/** Consequence of a failure. */
export type FailureRule = 'passes' | 'closes';

/** A terminal decision: later handlers aren't asked. */
export type FinalDecision<Name extends DecidingHook> = Extract<
  HookDecisions[Name],
  { readonly kind: 'block' | 'cancel' | 'claim' | 'drop' | 'refuse' }
>;

export type DecisionRule<Name extends DecidingHook> = {
  readonly failure: FailureRule;
  /** Handlers come from plugins and scripts and may answer anything. */
  readonly schema: z.ZodType<HookDecisions[Name]>;
  /** Returns the event as the next handler sees it; undefined if the decision is final. */
  apply(event: HookEvents[Name], decision: HookDecisions[Name]): HookEvents[Name] | undefined;
};

const text = z.string().max(1_000_000);
const reason = z.string().trim().min(1).max(500);
const resultChange = z.strictObject({
  kind: z.literal('rewrite'),
  text: text.optional(),
  isError: z.boolean().optional(),
  dropsMetadata: z.literal(true).optional(),
  dropsImages: z.literal(true).optional(),
});
/** A text that nobody would see is no text: dropping and cancelling are decisions of their own. */
const newText = z.strictObject({ kind: z.literal('rewrite'), text: text.regex(/\S/) });

/** All deciding hooks. */
export const decisionRules: { readonly [Name in DecidingHook]: DecisionRule<Name> } = {
  message_received: {
    failure: 'passes',
    schema: z.union([
      newText,
      z.strictObject({ kind: z.literal('claim') }),
      z.strictObject({ kind: z.literal('drop'), reason }),
    ]),
    apply: (event, decision) => (decision.kind === 'rewrite' ? { ...event, text: decision.text } : undefined),
  },
  // A handler registered with `guard` closes instead.
  message_sending: {
    failure: 'passes',
    schema: z.union([newText, z.strictObject({ kind: z.literal('cancel'), reason })]),
    apply: (event, decision) => (decision.kind === 'rewrite' ? { ...event, text: decision.text } : undefined),
  },
  before_agent_start: {
    failure: 'passes',
    schema: z.strictObject({
      kind: z.literal('rewrite'),
      context: text.optional(),
      prompt: text.optional(),
    }),
    apply: (event, { context, prompt = event.prompt }) => ({
      ...event,
      prompt,
      context: context === undefined ? event.context : [...event.context, context],
    }),
  },
  agent_bootstrap: {
    failure: 'passes',
    schema: z.strictObject({
      kind: z.literal('rewrite'),
      files: z.array(z.strictObject({ name: z.string().regex(/^[\w. -]{1,100}$/), text })).max(50),
    }),
    apply: (event, { files }) => ({ ...event, files }),
  },
  before_tool_call: {
    failure: 'closes',
    schema: z.union([
      z.strictObject({ kind: z.literal('rewrite'), input: z.record(z.string(), z.unknown()) }),
      z.strictObject({ kind: z.literal('ask') }),
      z.strictObject({ kind: z.literal('block'), reason }),
    ]),
    apply: (event, decision) => {
      if (decision.kind === 'block') return undefined;
      return decision.kind === 'ask' ? { ...event, isAsked: true } : { ...event, input: decision.input };
    },
  },
  after_tool_call: {
    failure: 'closes',
    schema: resultChange,
    apply: (event, change) => ({ ...event, result: changeResult(event.result, change) }),
  },
  tool_result_persist: {
    failure: 'closes',
    schema: resultChange,
    apply: (event, change) => ({ ...event, result: changeResult(event.result, change) }),
  },
  subagent_spawning: {
    failure: 'closes',
    schema: z.strictObject({ kind: z.literal('refuse'), reason }),
    apply: () => undefined,
  },
};

function changeResult(result: HookResult, change: HookDecisions['after_tool_call']): HookResult {
  const { metadata, ...rest } = result;
  const { text: changed = rest.text, isError = rest.isError, dropsImages, dropsMetadata } = change;
  return {
    ...{ text: changed, isError, images: dropsImages ? 0 : rest.images },
    ...(metadata !== undefined && !dropsMetadata && { metadata }),
  };
}

const observers: Readonly<Record<Exclude<keyof HookEvents, DecidingHook>, true>> = {
  gateway_start: true,
  gateway_stop: true,
  message_sent: true,
  session_start: true,
  session_end: true,
  before_reset: true,
  before_model_call: true,
  after_model_call: true,
  agent_end: true,
  before_compaction: true,
  after_compaction: true,
  subagent_ended: true,
};

/** Says whether the hook's handlers decide. */
export function isDeciding(name: string): name is DecidingHook {
  return Object.hasOwn(decisionRules, name);
}

/** Says whether there is such a hook. */
export function isHookName(name: string): name is HookName {
  return isDeciding(name) || Object.hasOwn(observers, name) || /^command:[a-z][a-z0-9_]{0,31}$/.test(name);
}
