"""What tokens cost: prices with their dates, and pure functions over them."""
