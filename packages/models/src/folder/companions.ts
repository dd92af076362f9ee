/** Files beside the weights that say how to use the model. */
export const companions =
  /^(tokenizer[\w-]*\.(json|model)|special_tokens_map\.json|added_tokens\.json|vocab\.(json|txt)|merges\.txt|chat_template\.(jinja|json)|generation_config\.json)$/;
