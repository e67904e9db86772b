// What is called in each scenario of the suite, once its server is listed.

const object = (values) => (typeof values === 'object' && values !== null ? values : {});

/** Tools to call, in order, with their arguments. */
export function callsOf(scenario, context, tools) {
  const named = object(context).toolCalls;
  if (Array.isArray(named)) return named.map(({ name, arguments: values }) => ({ tool: name, values: object(values) }));
  // It is sent back what it lists, word for word.
  const ofSchema = tools.find(({ name }) => name === 'json_schema_echo');
  if (ofSchema !== undefined) return [{ tool: ofSchema.name, values: { schema: tools.find((tool) => tool !== ofSchema)?.inputSchema } }];
  return tools.map(({ name, inputSchema }) => ({ tool: name, values: valuesFor(inputSchema) }));
}

/** Something that fits each field of a tool. */
function valuesFor({ properties = {} }) {
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type }]) => [
      name,
      { number: 2, integer: 2, boolean: true, object: {}, array: [] }[type] ?? 'words',
    ]),
  );
}
