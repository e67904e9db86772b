#!/usr/bin/env node
// An MCP server with everything that the conformance suite asks for by name. It speaks over stdio, in either era.
import { createRequestStateCodec, fromJsonSchema, inputRequired, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
/** Of this process alone: what it gave out it takes back, and nothing else. */
const KEY = randomBytes(32);
const text = (words) => ({ type: 'text', text: words });
const said = (...content) => ({ content });
const object = (properties = {}, more = {}) => fromJsonSchema({ type: 'object', properties, ...more });
const string = { type: 'string' };
const embedded = {
  type: 'resource',
  resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' },
};

function server() {
  const states = createRequestStateCodec({ key: KEY, ttlSeconds: 600 });
  const made = new McpServer(
    { name: 'conformance-upstream', version: '1.0.0' },
    {
      requestState: { verify: states.verify },
      capabilities: {
        logging: {},
        completions: {},
        resources: { subscribe: true, listChanged: true },
        tools: { listChanged: true },
        prompts: { listChanged: true },
      },
    },
  );
  const tool = (name, run, { inputSchema = object(), description = `The tool ${name} of the conformance suite` } = {}) =>
    made.registerTool(name, { description, inputSchema }, run);

  tool('test_simple_text', async () => said(text('This is a simple text response for testing.')));
  tool('test_image_content', async () => said({ type: 'image', data: PNG, mimeType: 'image/png' }));
  tool('test_audio_content', async () => said({ type: 'audio', data: WAV, mimeType: 'audio/wav' }));
  tool('test_embedded_resource', async () => said(embedded));
  tool('test_multiple_content_types', async () =>
    said(
      text('Multiple content types test:'),
      { type: 'image', data: PNG, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}' },
      },
    ),
  );
  tool('test_tool_with_logging', async (_input, context) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await context.mcpReq.log('info', data);
      await pause(50);
    }
    return said(text('Tool with logging executed successfully'));
  });
  tool('test_tool_with_progress', async (_input, context) => {
    const { progressToken } = context.mcpReq._meta ?? {};
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await pause(50);
    }
    return said(text('Tool with progress executed successfully'));
  });
  tool('test_error_handling', async () => ({ isError: true, content: [text('This tool intentionally returns an error for testing')] }));
  tool(
    'test_sampling',
    async ({ prompt }, context) => {
      const answer = context.mcpReq.inputResponses?.sampled;
      if (answer !== undefined) return said(text(`LLM response: ${answer.content?.text ?? ''}`));
      const params = { messages: [{ role: 'user', content: text(prompt) }], maxTokens: 100 };
      return inputRequired({ inputRequests: { sampled: inputRequired.createMessage(params) } });
    },
    { inputSchema: object({ prompt: string }, { required: ['prompt'] }) },
  );
  const elicits = (name, params, more) =>
    tool(
      name,
      async (input, context) => {
        const answer = context.mcpReq.inputResponses?.asked;
        if (answer === undefined)
          return inputRequired({ inputRequests: { asked: inputRequired.elicit({ mode: 'form', ...params(input) }) } });
        const { action, content } = answer;
        return said(text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`));
      },
      more,
    );
  elicits(
    'test_elicitation',
    ({ message }) => ({
      message,
      requestedSchema: {
        type: 'object',
        properties: { username: { ...string, description: 'Your name' }, email: { ...string, description: 'Your address' } },
        required: ['username', 'email'],
      },
    }),
    { inputSchema: object({ message: string }, { required: ['message'] }) },
  );
  elicits('test_elicitation_sep1034_defaults', () => ({
    message: 'Please review and update the form fields with defaults',
    requestedSchema: {
      type: 'object',
      properties: {
        name: { ...string, default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { ...string, enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      },
      required: [],
    },
  }));
  const titled = ['First', 'Second', 'Third'].map((title, index) => ({ const: `value${index + 1}`, title: `${title} Option` }));
  const options = ['option1', 'option2', 'option3'];
  elicits('test_elicitation_sep1330_enums', () => ({
    message: 'Please select options from the enum fields',
    requestedSchema: {
      type: 'object',
      properties: {
        untitledSingle: { ...string, enum: options },
        titledSingle: { ...string, oneOf: titled },
        legacyEnum: { ...string, enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
        untitledMulti: { type: 'array', items: { ...string, enum: options } },
        titledMulti: { type: 'array', items: { anyOf: titled } },
      },
      required: [],
    },
  }));
  tool('test_reconnection', async () => said(text('Reconnection test completed')));
  tool('json_schema_2020_12_tool', async () => said(text('called')), {
    inputSchema: fromJsonSchema({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { address: { $anchor: 'address', type: 'object', properties: { street: string, city: string } } },
      properties: { name: string, address: { $ref: '#/$defs/address' } },
      allOf: [{ anyOf: [{ required: [] }, { required: ['name'] }] }],
      if: { required: ['name'] },
      then: { properties: { name: { minLength: 1 } } },
      else: {},
      additionalProperties: false,
    }),
  });

  // What the stateless revision asks for: results that need input first, in one round or more, under state that nobody may change.
  const asksFor = (name, rounds) =>
    tool(name, async (_input, context) => {
      const { inputResponses: given, requestState } = context.mcpReq;
      const state = requestState();
      const round = state?.round ?? 0;
      const asked = rounds[round];
      if (asked === undefined || (given !== undefined && Object.keys(asked.inputRequests).every((key) => given[key] !== undefined))) {
        const next = rounds[round + 1];
        if (next === undefined)
          return said(text(`Done${asked?.isStated === true ? ': state-ok' : ''} ${JSON.stringify({ ...state?.given, ...given })}`));
        return inputRequired({ ...next, requestState: await states.mint({ round: round + 1, given }) });
      }
      const { isStated, ...first } = asked;
      return inputRequired({ ...first, ...(isStated === true ? { requestState: await states.mint({ round }) } : {}) });
    });
  const field = (name, type = 'string') => ({ type: 'object', properties: { [name]: { type } }, required: [name] });
  const form = (message, requestedSchema) => inputRequired.elicit({ mode: 'form', message, requestedSchema });
  const complete = (words, maxTokens) => inputRequired.createMessage({ messages: [{ role: 'user', content: text(words) }], maxTokens });
  const name = form('What is your name?', field('name'));
  asksFor('test_input_required_result_elicitation', [{ inputRequests: { user_name: name } }]);
  asksFor('test_input_required_result_sampling', [
    { inputRequests: { capital_question: complete('What is the capital of France?', 100) } },
  ]);
  asksFor('test_input_required_result_list_roots', [{ inputRequests: { client_roots: inputRequired.listRoots() } }]);
  for (const one of ['request_state', 'tampered_state'])
    asksFor(`test_input_required_result_${one}`, [
      { isStated: true, inputRequests: { confirm: form('Please confirm', field('ok', 'boolean')) } },
    ]);
  asksFor('test_input_required_result_multiple_inputs', [
    {
      isStated: true,
      inputRequests: { user_name: name, greeting: complete('Generate a greeting', 50), client_roots: inputRequired.listRoots() },
    },
  ]);
  asksFor('test_input_required_result_multi_round', [
    { isStated: true, inputRequests: { step1: form('Step 1: What is your name?', field('name')) } },
    { inputRequests: { step2: form('Step 2: What is your favorite color?', field('color')) } },
  ]);
  asksFor('test_input_required_result_capabilities', [
    { inputRequests: { user_name: name, greeting: complete('Generate a greeting', 50) } },
  ]);
  asksFor('test_missing_capability', [{ inputRequests: { sampled: complete('Whatever comes to mind', 10) } }]);
  asksFor('test_streaming_elicitation', [{ inputRequests: { user_name: name } }]);
  tool('test_logging_tool', async (_input, context) => {
    await context.mcpReq.log('info', 'logged');
    return said(text('Logged'));
  });
  let changes = 0;
  tool('test_trigger_tool_change', async () => {
    tool(`test_new_tool_${++changes}`, async () => said(text('new')));
    return said(text('The list of tools changed'));
  });
  tool('test_trigger_prompt_change', async () => {
    prompt(`test_new_prompt_${++changes}`, () => [user(text('new'))]);
    return said(text('The list of prompts changed'));
  });

  const resource = (name, uri, { mimeType, ...content }) =>
    made.registerResource(name, uri, { mimeType, description: `The resource ${uri} of the conformance suite` }, async () => ({
      contents: [{ uri, mimeType, ...content }],
    }));
  resource('static-text', 'test://static-text', { mimeType: 'text/plain', text: 'This is the content of the static text resource.' });
  resource('static-binary', 'test://static-binary', { mimeType: 'image/png', blob: PNG });
  resource('watched-resource', 'test://watched-resource', { mimeType: 'text/plain', text: 'Watched resource content' });
  made.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { mimeType: 'application/json', description: 'A resource of each id' },
    async (uri, { id }) => ({
      contents: [
        { uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) },
      ],
    }),
  );
  for (const method of ['resources/subscribe', 'resources/unsubscribe']) made.server.setRequestHandler(method, async () => ({}));
  made.server.setRequestHandler('completion/complete', async ({ params }) => {
    const values = ['test-value', 'test-other', 'paris', 'park'].filter((value) => value.startsWith(params.argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });

  const user = (content) => ({ role: 'user', content });
  const prompt = (name, run, properties) =>
    made.registerPrompt(
      name,
      {
        description: `The prompt ${name} of the conformance suite`,
        ...(properties === undefined ? {} : { argsSchema: object(properties, { required: Object.keys(properties) }) }),
      },
      async (input) => ({ messages: run(input) }),
    );
  prompt('test_simple_prompt', () => [user(text('This is a simple prompt for testing.'))]);
  prompt('test_prompt_with_arguments', ({ arg1, arg2 }) => [user(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`))], {
    arg1: { ...string, description: 'First test argument' },
    arg2: { ...string, description: 'Second test argument' },
  });
  prompt(
    'test_prompt_with_embedded_resource',
    ({ resourceUri }) => [
      user({ type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } }),
      user(text('Please process the embedded resource above.')),
    ],
    { resourceUri: { ...string, description: 'Address of the resource to embed' } },
  );
  made.registerPrompt('test_input_required_result_prompt', { description: 'A prompt that asks first' }, async (context) => {
    const answer = context.mcpReq.inputResponses?.user_context;
    if (answer === undefined)
      return inputRequired({ inputRequests: { user_context: form('What context should the prompt use?', field('context')) } });
    return { messages: [user(text(`In the context of ${answer.content?.context ?? 'nothing'}`))] };
  });
  prompt('test_prompt_with_image', () => [
    user({ type: 'image', data: PNG, mimeType: 'image/png' }),
    user(text('Please analyze the image above.')),
  ]);
  return made;
}

serveStdio(server, { legacy: 'serve' });
