import type { ModelInfo } from '#contracts/model.ts';
import { lookUpPrices, undated } from './prices.ts';

/** A model's facts that the request builder needs in addition to the public ones. */
export type ClaudeModel = ModelInfo & {
  /** `budget`: a token budget for thinking; `adaptive`: an effort level, since budgets are refused. */
  readonly thinking: 'budget' | 'adaptive';
  /** How thinking is turned off; `never`: it can't be, so the effort is set low. */
  readonly thinkingOff: 'omit' | 'disabled' | 'between_tools' | 'never';
  /**
   * The model refuses thinking blocks if the system prompt, tools or messages before them have since changed,
   * unless it is told to drop them (preserved thinking).
   */
  readonly bindsThinking: boolean;
};

type Traits = Pick<ClaudeModel, 'thinking' | 'thinkingOff' | 'bindsThinking'> & {
  readonly contextWindow: number;
  readonly maxOutputTokens: number;
};

const answerTokens = 16_000;

const large = { contextWindow: 1_000_000, maxOutputTokens: 128_000, thinking: 'adaptive' } as const;
const small = { contextWindow: 200_000, maxOutputTokens: 64_000, thinking: 'budget' } as const;

/** Source: platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting, read 2026-11. */
const traits: readonly (readonly [RegExp, Traits])[] = [
  [/^claude-(fable|mythos)-5-[12]$/, { ...large, thinkingOff: 'never', bindsThinking: true }],
  [/^claude-opus-5-5$/, { ...large, thinkingOff: 'never', bindsThinking: true }],
  [/^claude-sonnet-5-5$/, { ...large, thinkingOff: 'between_tools', bindsThinking: true }],
  [/^claude-haiku-5-5$/, { ...large, thinkingOff: 'disabled', bindsThinking: true }],
  [/^claude-(fable|mythos)-5$/, { ...large, thinkingOff: 'never', bindsThinking: false }],
  [/^claude-(opus|sonnet)-5$/, { ...large, thinkingOff: 'disabled', bindsThinking: false }],
  [/^claude-opus-4-[678]$/, { ...large, thinkingOff: 'omit', bindsThinking: false }],
  [/^claude-sonnet-4-6$/, { ...large, maxOutputTokens: 64_000, thinkingOff: 'omit', bindsThinking: false }],
  [/^claude-(opus|sonnet|haiku)-4-5$/, { ...small, thinkingOff: 'omit', bindsThinking: false }],
];

/** Cautious assumptions about a model that isn't in the table, perhaps from a compatible server. */
const unknown: Traits = { ...small, maxOutputTokens: 32_000, thinkingOff: 'omit', bindsThinking: false };

export function claudeModel(id: string): ClaudeModel {
  const found = traits.find(([pattern]) => pattern.test(undated(id)))?.[1] ?? unknown;
  return { ...found, id, answerTokens, canThink: true, prices: lookUpPrices(id) };
}
