/**
 * What the platform refuses about a request as a whole: fields, limits, tools, system, thinking settings, cache marks.
 * The order of the conversation is checked in check-conversation.ts.
 */

import { checkConversation } from './check-conversation.ts';
import { checkJson } from './check-json.ts';
import { type ModelRules, rulesOf } from './model-rules.ts';
import { asArray, asInteger, asObject, asText, checkFields, type Json, Refusal } from './refusal.ts';
import type { WireBody } from './wire.ts';

/** Returns the checked request; throws a `Refusal`. */
export function checkRequest(raw: unknown, beta: string): WireBody {
  checkJson(raw);
  const body = asObject(raw, 'body');
  checkFields(body, '', topLevel);
  const model = asText(body.model, 'model');
  if (!model.startsWith('claude-'))
    throw new Refusal(`model: ${model}`, { status: 404, type: 'not_found_error' });
  const rules = rulesOf(model);
  checkMaxTokens(body, rules);
  checkSystem(body.system);
  checkTools(body.tools);
  checkThinking(body, rules, beta);
  checkCacheMarks(body);
  checkConversation(body, rules);
  return body as unknown as WireBody;
}

const topLevel = {
  required: ['model', 'max_tokens', 'messages'],
  optional: [
    'system',
    'tools',
    'tool_choice',
    'stream',
    'thinking',
    'output_config',
    'stop_sequences',
    'metadata',
    'service_tier',
    'diagnostics',
  ],
};

function checkMaxTokens(body: Json, rules: ModelRules): void {
  const maxTokens = asInteger(body.max_tokens, 'max_tokens');
  if (maxTokens < 1) throw new Refusal('max_tokens: Input should be greater than or equal to 1');
  if (maxTokens > rules.maxOutputTokens) {
    throw new Refusal(`max_tokens: ${maxTokens} > ${rules.maxOutputTokens}, the maximum of ${body.model}`);
  }
  if (body.stream !== undefined && typeof body.stream !== 'boolean') {
    throw new Refusal('stream: Input should be a valid boolean');
  }
}

function checkSystem(system: unknown): void {
  if (system === undefined || typeof system === 'string') return;
  for (const [index, raw] of asArray(system, 'system').entries()) {
    const path = `system.${index}`;
    const block = asObject(raw, path);
    checkFields(block, path, { required: ['type', 'text'], optional: ['cache_control'] });
    if (block.type !== 'text') throw new Refusal(`${path}.type: Input should be 'text'`);
    if (asText(block.text, `${path}.text`) === '') {
      throw new Refusal('system: text content blocks must be non-empty');
    }
  }
}

function checkTools(tools: unknown): void {
  if (tools === undefined) return;
  const names = new Set<string>();
  for (const [index, raw] of asArray(tools, 'tools').entries()) {
    const path = `tools.${index}.custom`;
    const tool = asObject(raw, path);
    checkFields(tool, path, {
      required: ['name', 'input_schema'],
      optional: ['description', 'cache_control', 'type', 'strict'],
    });
    const name = asText(tool.name, `${path}.name`);
    if (!/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
      throw new Refusal(`${path}.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
    }
    if (names.has(name)) throw new Refusal('tools: Tool names must be unique.');
    names.add(name);
    checkSchema(asObject(tool.input_schema, `${path}.input_schema`), `${path}.input_schema`);
  }
}

function checkSchema(schema: Json, path: string): void {
  if (schema.type !== 'object') throw new Refusal(`${path}.type: Input should be 'object'`);
  if (schema.properties !== undefined) asObject(schema.properties, `${path}.properties`);
  if (schema.required !== undefined) asArray(schema.required, `${path}.required`);
  for (const keyword of ['oneOf', 'allOf', 'anyOf']) {
    if (schema[keyword] !== undefined) {
      throw new Refusal(`${path}: input_schema does not support oneOf, allOf, or anyOf at the top level`);
    }
  }
}

function checkThinking(body: Json, rules: ModelRules, beta: string): void {
  if (body.thinking === undefined) return;
  const thinking = asObject(body.thinking, 'thinking');
  checkFields(thinking, 'thinking', {
    required: ['type'],
    optional: ['budget_tokens', 'display', 'block_binding'],
  });
  const type = asText(thinking.type, 'thinking.type');
  if (!rules.thinkingTypes.includes(type)) {
    throw new Refusal(`"thinking.type.${type}" is not supported for this model.`);
  }
  if (thinking.block_binding !== undefined && !beta.includes('thinking-binding-controls-2026-08-01')) {
    throw new Refusal('thinking.block_binding: Extra inputs are not permitted');
  }
  if (type === 'enabled') checkBudget(thinking, asInteger(body.max_tokens, 'max_tokens'));
  else if (thinking.budget_tokens !== undefined) {
    throw new Refusal(`thinking.${type}.budget_tokens: Extra inputs are not permitted`);
  }
}

function checkBudget(thinking: Json, maxTokens: number): void {
  const budget = asInteger(thinking.budget_tokens, 'thinking.enabled.budget_tokens');
  if (budget < 1024) {
    throw new Refusal('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024');
  }
  if (maxTokens <= budget) throw new Refusal('`max_tokens` must be greater than `thinking.budget_tokens`.');
}

function checkCacheMarks(body: Json): void {
  const marks: unknown[] = [];
  JSON.stringify([body.tools, body.system, body.messages], (key, value) => {
    if (key === 'cache_control') marks.push(value);
    return value;
  });
  for (const mark of marks) {
    if (asObject(mark, 'cache_control').type !== 'ephemeral') {
      throw new Refusal("cache_control.type: Input should be 'ephemeral'");
    }
  }
  if (marks.length > 4) {
    throw new Refusal(`A maximum of 4 blocks with cache_control may be provided. Found ${marks.length}.`);
  }
}
