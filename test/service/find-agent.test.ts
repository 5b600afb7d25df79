import { describe, expect, it } from 'vitest';
import { findAgent } from '../../src/service/find-agent.ts';

describe('the agent of a name', () => {
  const agents = [{ id: 'clerk' }, { id: 'main' }];

  it.each([
    [undefined, 'clerk'],
    ['clerk', 'clerk'],
    // An agent with this exact name.
    ['main', 'main'],
    ['coder', 'clerk'],
    ['nobody', undefined],
  ])('%s is %s', (name, id) => {
    expect(findAgent(agents, name, 'clerk')?.id).toBe(id);
  });
});
