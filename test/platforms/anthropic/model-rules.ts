/**
 * What each model generation refuses about thinking
 * (platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting, checked 2026-11).
 */
export type ModelRules = {
  readonly contextTokens: number;
  readonly maxOutputTokens: number;
  readonly thinkingTypes: readonly string[];
  /** Thinking blocks are tied to the exact system, tools and messages that precede them. */
  readonly bindsThinking: boolean;
};

const MILLION = 1_000_000;

export function rulesOf(model: string): ModelRules {
  return {
    contextTokens: /-4-5/.test(model) ? 200_000 : MILLION,
    maxOutputTokens: /-4-5|sonnet-4-6/.test(model) ? 64_000 : 128_000,
    thinkingTypes: thinkingTypesOf(model),
    bindsThinking: /-(5-5|5-1|5-2)$/.test(model),
  };
}

function thinkingTypesOf(model: string): readonly string[] {
  if (/-4-5/.test(model)) return ['enabled', 'disabled'];
  if (/-4-6/.test(model)) return ['enabled', 'adaptive', 'disabled'];
  if (/fable|mythos|opus-5-5/.test(model)) return ['adaptive'];
  if (/sonnet-5-5/.test(model)) return ['adaptive', 'between_tools'];
  return ['adaptive', 'disabled'];
}
