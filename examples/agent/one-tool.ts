import { agentLoop, anthropic, defineTool, demoModel, z } from 'parley/agent';

const roll = defineTool({
  name: 'roll',
  description: 'Rolls a die.',
  inputSchema: z.object({ sides: z.int().min(2).default(6) }),
  execute: async ({ sides }) => ({ text: `${1 + Math.floor(Math.random() * sides)}` }),
});
const apiKey = process.env.ANTHROPIC_API_KEY;
const model = apiKey ? anthropic('claude-sonnet-5-5', { apiKey }) : demoModel();
for await (const event of agentLoop('use roll', { system: 'Be brief.', tools: [roll] }, { model }))
  if (event.type === 'message_update' && event.event.type === 'content_delta')
    process.stdout.write(event.event.text);
