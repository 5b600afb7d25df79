import { describe, expect, it } from 'vitest';
import { findAgent } from '../../src/service/find-agent.ts';

describe('the agent with a given name', () => {
  const agents = [{ id: 'clerk' }, { id: 'main' }];

  it.each([
    [undefined, 'clerk'],
    ['clerk', 'clerk'],
    // An agent with this exact name.
    ['main', 'main'],
    ['coder', 'clerk'],
    ['nobody', undefined],
  ])('resolves the name %s to %s', (name, id) => {
    expect(findAgent(agents, name, 'clerk')?.id).toBe(id);
  });
});
