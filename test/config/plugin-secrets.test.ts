import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readEnvironment } from '../../src/config/environment.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { settingsOfPlugin } from '../../src/config/plugin-secrets.ts';
import { secretsOf } from '../../src/config/secrets-of.ts';
import { aFolder } from '../support/own-folder.ts';

const key = 'BSA-0123456789abcdef';

function load(web: object, variables: Record<string, string> = {}) {
  const folder = aFolder();
  writeFileSync(join(folder, 'parley.config.json'), JSON.stringify({ plugins: { web } }));
  return loadConfig(readEnvironment(variables), folder);
}

describe('the secrets of a plugin', () => {
  it.each([
    [{ backend: 'brave' }, 'BRAVE_API_KEY'],
    [{ backend: 'tavily' }, 'TAVILY_API_KEY'],
    [{ backend: 'tavily', keyEnv: 'MY_KEY' }, 'MY_KEY'],
  ])('reads the secret from the variable of %j, for redaction too', (search, variable) => {
    const config = load({ search }, { [variable]: key });
    expect(String(config.plugins.web.searchKey)).toBe('[secret]');
    expect(secretsOf(config)).toContain(key);
    expect(settingsOfPlugin(config, 'web')).toMatchObject({ enabled: true, search, searchKey: key });
  });

  it('reads no secret without its variable, or without a search that needs it', () => {
    expect(settingsOfPlugin(load({ search: { backend: 'brave' } }), 'web')).not.toHaveProperty('searchKey');
    expect(settingsOfPlugin(load({}, { BRAVE_API_KEY: key }), 'web')).not.toHaveProperty('searchKey');
  });

  it('refuses a secret in the file, and a placeholder', () => {
    const search = { backend: 'brave' };
    expect(() => load({ search, searchKey: key })).toThrow('set it there as BRAVE_API_KEY');
    expect(() => load({ search }, { BRAVE_API_KEY: 'your-api-key' })).toThrow('is a placeholder');
  });
});
